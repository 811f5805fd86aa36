-- An ask of a fixed_window: `first` is the start of the window that was last counted in, `second`
-- the units taken in it.
--   verb 0  spend: `times` callers of `cost` units each, as many as fit under `most`
--   verb 1  charge: `cost` units, whether they fit or not
--   verb 2  give back: `cost` units, of the window that ends at `lapses`, before it has ended
-- Instants and `length`, the window's, are nanoseconds; counts end at 2^62 - 1. A window has at
-- most 100 years and `at` lies in 1970 … 2150, so that instant + window stays below 2^63. Nothing
-- granted: the words as they were.
--
-- The planner puts the body in the place of the call. OFFSET 0 keeps the steps apart: it would put
-- an expression in each place that uses it, and compute it as often.
CREATE OR REPLACE FUNCTION weir.fixed_window(
    verb bigint, first bigint, second bigint, third bigint,
    most bigint, length bigint, cost bigint, times bigint, lapses bigint, at bigint)
RETURNS SETOF weir.outcome LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1 AS $$
    SELECT made.start, made.used, 0::bigint,
           CASE WHEN made.used > 0 THEN made.start + length ELSE made.start END,
           made.granted
    FROM (
        SELECT judged.granted,
               CASE WHEN judged.seen_used = 0 AND (judged.granted > 0 OR verb = 1)
                    THEN at - at % length
                    ELSE first
               END AS start,
               CASE WHEN judged.granted > 0 THEN judged.seen_used + judged.granted * cost
                    WHEN verb = 1 THEN least(judged.seen_used + cost, 4611686018427387903)
                    WHEN verb = 2 AND at < lapses AND first + length = lapses
                    THEN greatest(second - cost, 0)
                    ELSE second
               END AS used
        FROM (
            SELECT seen.used AS seen_used,
                   -- a cost of 0 fits always: least() passes over the NULL
                   CASE WHEN verb = 0
                        THEN least(times, greatest(most - seen.used, 0) / nullif(cost, 0))
                        ELSE 0
                   END AS granted
            FROM (
                -- A start further ahead than a clock steps back is not believed.
                SELECT CASE WHEN first > at - length
                                 AND first <= at + greatest(length, 3600000000000)
                            THEN second
                            ELSE 0
                       END AS used
                OFFSET 0
            ) AS seen
            OFFSET 0
        ) AS judged
        OFFSET 0
    ) AS made
$$;
