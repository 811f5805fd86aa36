-- An ask of a gcra: `first` is the instant at which everything is back; units are the time that
-- they take to come back.
--   verb 0  spend: `times` callers of `cost` each, as many as fit under `tolerance`
--   verb 1  charge: `cost`, whether it fits or not; remembered up to an hour beyond the tolerance
--   verb 2  give back: `cost`, of the burst at most, before `lapses`
-- All are nanoseconds. `tolerance` is burst x interval, or -1 where the limit is 0 and nothing
-- fits; `cost` is units x interval. `at` lies in 1970 … 2150 and the tolerance is at most 2^61 (73
-- years), so that at + tolerance + an hour stays below 2^63; nothing here grows beyond that.
-- `unused` is there so that all policies are called alike. Nothing granted: the words as they were.
--
-- The planner puts the body in the place of the call. OFFSET 0 keeps the steps apart: it would put
-- an expression in each place that uses it, and compute it as often.
CREATE OR REPLACE FUNCTION weir.gcra(
    verb bigint, first bigint, second bigint, third bigint,
    tolerance bigint, unused bigint, cost bigint, times bigint, lapses bigint, at bigint)
RETURNS SETOF weir.outcome LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1 AS $$
    SELECT made.full_at, 0::bigint, 0::bigint, made.full_at, made.granted
    FROM (
        SELECT judged.granted,
               CASE WHEN judged.granted > 0 THEN judged.full_at + judged.granted * cost
                    WHEN verb = 1
                    THEN judged.full_at + least(
                        cost, at + greatest(tolerance, 0) + 3600000000000 - judged.full_at)
                    WHEN verb = 2 AND at < lapses AND first > at
                    THEN greatest(first - cost, at)
                    ELSE first
               END AS full_at
        FROM (
            SELECT seen.full_at,
                   -- a cost of 0 fits always: least() passes over the NULL
                   CASE WHEN verb = 0 AND seen.full_at <= at + tolerance
                        THEN least(times, (at + tolerance - seen.full_at) / nullif(cost, 0))
                        ELSE 0
                   END AS granted
            FROM (
                -- An instant further ahead than a clock steps back is not believed.
                SELECT CASE WHEN first > at
                                 AND first <= at + greatest(tolerance, 0) + 3600000000000
                            THEN first
                            ELSE at
                       END AS full_at
                OFFSET 0
            ) AS seen
            OFFSET 0
        ) AS judged
        OFFSET 0
    ) AS made
$$;
