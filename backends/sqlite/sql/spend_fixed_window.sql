-- spend, charge or give_back on a fixed_window: `first` is the start of the window that was last
-- counted in, `second` the units taken in it. Instants are nanoseconds. What could overflow is
-- handed in, held at the ends of 63 bits:
--   :first_current   the earliest start of a window that is not over
--   :furthest        the latest start that is believed
--   :window_start    the start of the window of the ask
--   :charged         give_back: the start of the window that was charged
-- Yields granted, changed, and the state to keep if it changed; else the one that was there.
WITH
stored AS (
    SELECT first AS start, second AS used,
           ifnull(second > 0 AND first BETWEEN :first_current AND :furthest, 0) AS goes_on
    FROM (SELECT :key AS wanted) LEFT JOIN weir_counters ON key = wanted
    LIMIT 1
),
seen AS (
    SELECT stored.start, stored.used,
           CASE WHEN goes_on THEN start ELSE :window_start END AS seen_start,
           CASE WHEN goes_on THEN used ELSE 0 END AS seen_used
    FROM stored
    LIMIT 1
),
judged AS (
    SELECT *,
           CASE WHEN :verb <> 'spend' THEN 0
                WHEN :cost = 0 THEN :times
                ELSE min(:times, max(:limit - seen_used, 0) / :cost)
           END AS granted
    FROM seen
    LIMIT 1
),
made AS (
    SELECT granted,
           CASE :verb WHEN 'spend' THEN granted > 0
                      WHEN 'charge' THEN 1
                      ELSE ifnull(start = :charged, 0)
           END AS changed,
           start, used,
           CASE :verb WHEN 'give_back' THEN start ELSE seen_start END AS made_start,
           CASE :verb WHEN 'spend' THEN seen_used + granted * :cost
                      WHEN 'charge' THEN min(seen_used + :units, :most)
                      ELSE max(used - :units, 0)
           END AS made_used
    FROM judged
    LIMIT 1
)
SELECT granted, changed,
       CASE WHEN changed THEN made_start ELSE start END,
       CASE WHEN changed THEN made_used ELSE used END,
       0,
       CASE WHEN made_used > 0 THEN min(made_start, 9223372036854775807 - :window) + :window
            ELSE made_start
       END
FROM made;
