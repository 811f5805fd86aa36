-- spend, charge or give_back on a gcra: `first` is the instant at which everything is back, in
-- nanoseconds. What could overflow is handed in, held at the ends of 63 bits:
--   :tolerance  burst x interval
--   :furthest   the latest such instant that is believed
--   :worth      cost x interval
--   :debt       charge: what the units take to come back
--   :refund     give_back: the same, of the burst at most
-- Yields granted, changed, and the state to keep if it changed; else the one that was there.
WITH
stored AS (
    SELECT first AS full_at,
           CASE WHEN first > :at AND first <= :furthest THEN first ELSE :at END AS seen
    FROM (SELECT :key AS wanted) LEFT JOIN weir_counters ON key = wanted
    LIMIT 1
),
judged AS (
    SELECT full_at, seen,
           CASE WHEN :verb <> 'spend' OR seen - :at > :tolerance THEN 0
                WHEN :worth = 0 THEN :times
                ELSE min(:times, (:tolerance - (seen - :at)) / :worth)
           END AS granted
    FROM stored
    LIMIT 1
),
made AS (
    SELECT granted, full_at,
           CASE :verb WHEN 'spend' THEN granted > 0
                      WHEN 'charge' THEN 1
                      ELSE ifnull(full_at > :at, 0)
           END AS changed,
           CASE :verb
               WHEN 'spend'
               THEN min(seen, 9223372036854775807 - granted * :worth) + granted * :worth
               WHEN 'charge'
               THEN min(min(seen, 9223372036854775807 - :debt) + :debt, :furthest)
               ELSE max(max(full_at, :refund - 9223372036854775807) - :refund, :at)
           END AS made_full_at
    FROM judged
    LIMIT 1
)
SELECT granted, changed,
       CASE WHEN changed THEN made_full_at ELSE full_at END,
       0,
       0,
       made_full_at
FROM made;
