-- An ask of a sliding_window: `first` is the start of the window that was last counted in, `second`
-- the units taken in it, `third` those of the window before.
--   verb 0  spend: `times` callers of `cost` units each, as many as fit under `most`
--   verb 1  charge: `cost` units, whether they fit or not
--   verb 2  give back: `cost` units, of the window that ends at `lapses`, before it has ended
-- Instants and `length`, the window's, are nanoseconds; elapsed time counts in whole microseconds;
-- counts end at 2^62 - 1. most x length in microseconds is below 2^63. A window has at most 100
-- years and `at` lies in 1970 … 2150, so that instant + window stays below 2^63, but not always +
-- two. Nothing granted: the words as they were.
--
-- The planner puts the body in the place of the call. OFFSET 0 keeps the steps apart: it would put
-- an expression in each place that uses it, and compute it as often.
CREATE OR REPLACE FUNCTION weir.sliding_window(
    verb bigint, first bigint, second bigint, third bigint,
    most bigint, length bigint, cost bigint, times bigint, lapses bigint, at bigint)
RETURNS SETOF weir.outcome LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1 AS $$
    SELECT made.start, made.taken, made.before,
           CASE WHEN made.taken > 0
                THEN least(made.start + length, 9223372036854775807 - length) + length
                WHEN made.before > 0 THEN made.start + length
                ELSE made.start
           END,
           made.granted
    FROM (
        SELECT judged.granted,
               CASE WHEN judged.granted > 0 OR verb = 1 THEN judged.start ELSE first END AS start,
               CASE WHEN judged.granted > 0 THEN judged.taken + judged.granted * cost
                    WHEN verb = 1 THEN least(judged.taken + cost, 4611686018427387903)
                    WHEN verb = 2 AND at < lapses AND first + length = lapses
                    THEN greatest(second - cost, 0)
                    ELSE second
               END AS taken,
               CASE WHEN judged.granted > 0 OR verb = 1 THEN judged.before ELSE third END AS before
        FROM (
            SELECT seen.start, seen.taken, seen.before,
                   CASE WHEN verb <> 0 THEN 0
                        -- A debt so large that its product overflows leaves no room.
                        WHEN seen.before > most
                             AND seen.before > 9223372036854775807 / seen.remaining
                        THEN CASE WHEN cost = 0 THEN times ELSE 0 END
                        -- (free x ticks - before x remaining) / ticks rounds against the client;
                        -- a cost of 0 fits always: least() passes over the NULL
                        ELSE least(times,
                                   greatest(greatest(most - seen.taken, 0) * (length / 1000)
                                            - seen.before * seen.remaining, 0)
                                   / (length / 1000) / nullif(cost, 0))
                   END AS granted
            FROM (
                -- Starts are multiples of `length`: one that is neither this nor the last is of
                -- windows long over, or of a clock that was wrong, and counts no more.
                SELECT began.start,
                       CASE WHEN began.start = first THEN second ELSE 0 END AS taken,
                       CASE began.start WHEN first THEN third WHEN first + length THEN second ELSE 0
                       END AS before,
                       length / 1000 - greatest(at - began.start, 0) / 1000 AS remaining
                FROM (
                    -- A start further ahead than a clock steps back is not believed.
                    SELECT CASE WHEN first > at - length
                                     AND first <= at + greatest(length, 3600000000000)
                                     AND (second > 0 OR third > 0)
                                THEN first
                                ELSE at - at % length
                           END AS start
                    OFFSET 0
                ) AS began
                OFFSET 0
            ) AS seen
            OFFSET 0
        ) AS judged
        OFFSET 0
    ) AS made
$$;
