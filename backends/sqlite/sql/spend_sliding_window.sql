-- spend, charge or give_back on a sliding_window: `first` is the start of the window that was last
-- counted in, `second` the units taken in it, `third` those of the window before. Instants are
-- nanoseconds, elapsed time counts in whole microseconds. What could overflow is handed in, held
-- at the ends of 63 bits:
--   :first_current   the earliest start of a window that is not over
--   :first_previous  the earliest start of one that is over by less than a window
--   :furthest        the latest start that is believed
--   :window_start    the start of the window of the ask
--   :charged         give_back: the start of the window that was charged
--   :ticks           the window in microseconds
-- Yields granted, changed, and the state to keep if it changed; else the one that was there.
WITH
stored AS (
    SELECT first AS start, second AS taken, third AS before,
           CASE WHEN (second > 0 OR third > 0) AND first BETWEEN :first_current AND :furthest
                THEN 'goes on'
                WHEN second > 0 AND first < :first_current AND first >= :first_previous
                THEN 'rolls on'
                ELSE 'fresh'
           END AS case_of
    FROM (SELECT :key AS wanted) LEFT JOIN weir_counters ON key = wanted
    LIMIT 1
),
seen AS (
    SELECT start, taken, before,
           CASE case_of WHEN 'goes on' THEN start
                        WHEN 'rolls on' THEN start + :window
                        ELSE :window_start
           END AS seen_start,
           CASE case_of WHEN 'goes on' THEN taken ELSE 0 END AS seen_taken,
           CASE case_of WHEN 'goes on' THEN before WHEN 'rolls on' THEN taken ELSE 0
           END AS seen_before
    FROM stored
    LIMIT 1
),
faded AS (
    SELECT *, :ticks - max(:at - seen_start, 0) / 1000 AS remaining FROM seen LIMIT 1
),
spare AS (
    -- limit x ticks < 2^63, so what overflows here leaves no room.
    SELECT *,
           CASE WHEN seen_before > 9223372036854775807 / remaining THEN 0
                ELSE max(:limit - seen_taken - seen_before * remaining / :ticks
                                - (seen_before * remaining % :ticks > 0), 0)
           END AS room
    FROM faded
    LIMIT 1
),
judged AS (
    SELECT *,
           CASE WHEN :verb <> 'spend' THEN 0
                WHEN :cost = 0 THEN :times
                ELSE min(:times, room / :cost)
           END AS granted
    FROM spare
    LIMIT 1
),
made AS (
    SELECT granted,
           CASE :verb WHEN 'spend' THEN granted > 0
                      WHEN 'charge' THEN 1
                      ELSE ifnull(start = :charged, 0)
           END AS changed,
           start, taken, before,
           CASE :verb WHEN 'give_back' THEN start ELSE seen_start END AS made_start,
           CASE :verb WHEN 'spend' THEN seen_taken + granted * :cost
                      WHEN 'charge' THEN min(seen_taken + :units, :most)
                      ELSE max(taken - :units, 0)
           END AS made_taken,
           CASE :verb WHEN 'give_back' THEN before ELSE seen_before END AS made_before
    FROM judged
    LIMIT 1
),
ended AS (
    SELECT *, min(made_start, 9223372036854775807 - :window) + :window AS made_end FROM made LIMIT 1
)
SELECT granted, changed,
       CASE WHEN changed THEN made_start ELSE start END,
       CASE WHEN changed THEN made_taken ELSE taken END,
       CASE WHEN changed THEN made_before ELSE before END,
       CASE WHEN made_taken > 0 THEN min(made_end, 9223372036854775807 - :window) + :window
            WHEN made_before > 0 THEN made_end
            ELSE made_start
       END
FROM ended;
