-- spend, charge or give_back on a lockout: `first` is the instant of the last try, `third` the tries
-- before it, each as how many grains it lies back, the latest in the lowest bits, 62 / (failures - 1)
-- bits for each. `second` is below zero, which no other policy's is, and its complement holds, from
-- the lowest bit: places taken 5, level 5, failures that `third` is packed for 5, the second after
-- which the last lockout ended 33, the mark of the guard 12.
--   :first, :longest, :quiet   in seconds; instants and other lengths are nanoseconds
--   :part                      hundredths of the random part
--   :furthest                  the latest last try that is believed
--   :stamp                     give_back: the instant of the tries
-- Yields granted, changed, and the state to keep if it changed; else the one that was there.
WITH RECURSIVE
place(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM place WHERE i < 20),
stored AS (
    SELECT first, second, third,
           ifnull(first, 0) AS last,
           CASE WHEN second < 0 THEN ~second ELSE 0 END AS rest,
           62 / max(:failures - 1, 1) AS bits
    FROM (SELECT :key AS wanted) LEFT JOIN weir_counters ON key = wanted
    LIMIT 1
),
apart AS (
    SELECT *,
           min(rest & 31, :failures) AS taken,
           rest >> 5 & 31 AS level,
           rest >> 15 & 8589934591 AS ended,
           CASE WHEN (rest >> 10 & 31) = :failures THEN third ELSE 0 END AS log,
           (1 << bits) - 1 AS mask,
           last / :grain + (last % :grain > 0) AS last_step,
           :at / :grain + (:at % :grain > 0) AS at_step
    FROM stored
    LIMIT 1
),
-- A state whose last try lies too far ahead is the trace of a broken clock.
believed AS (
    SELECT *,
           CASE WHEN taken > 0 AND last > :furthest THEN 0 ELSE taken END AS taken_then,
           CASE WHEN taken > 0 AND last > :furthest THEN 0 ELSE level END AS level_then,
           CASE WHEN taken > 0 AND last > :furthest THEN 0 ELSE ended END AS ended_then,
           CASE WHEN taken > 0 AND last > :at AND last <= :furthest THEN last ELSE :at END AS here
    FROM apart
    LIMIT 1
),
timed AS (
    SELECT *,
           here / :grain + (here % :grain > 0) AS here_step,
           CASE WHEN :first > :longest >> level_then THEN :longest ELSE :first << level_then END
               AS whole,
           max(last, 0) / 1000 % 1000003 * 7919 % 1009 % (:part + 1) AS drawn
    FROM believed
    LIMIT 1
),
closing AS (
    SELECT *, last + whole * 1000000000 + whole * 10000000 * drawn AS until FROM timed LIMIT 1
),
opened AS (
    SELECT *,
           taken_then >= :failures AND here < until AS closed,
           taken_then >= :failures AND here >= until AS over
    FROM closing
    LIMIT 1
),
risen AS (
    SELECT *,
           CASE WHEN over THEN 0 ELSE taken_then END AS taken_now,
           level_then + (over AND whole < :longest) AS level_up,
           CASE WHEN over THEN max(until / 1000000000 + (until % 1000000000 > 0), 0)
                ELSE ended_then
           END AS ended_up
    FROM opened
    LIMIT 1
),
quieted AS (
    SELECT *,
           CASE WHEN closed THEN 0
                ELSE max(here / 1000000000 - (here % 1000000000 < 0) - ended_up, 0) / :quiet
           END AS steps,
           here_step - last_step AS since,
           here_step - ((here - :window) / :grain - ((here - :window) % :grain < 0)) AS gone
    FROM risen
    LIMIT 1
),
calmed AS (
    SELECT *,
           CASE WHEN steps >= level_up THEN 0 ELSE level_up - steps END AS level_now,
           CASE WHEN steps >= level_up THEN 0 ELSE ended_up + steps * :quiet END AS ended_now,
           CASE WHEN closed THEN taken_now
                ELSE (SELECT count(*) FROM place
                      WHERE i < taken_now
                        AND since + CASE i WHEN 0 THEN 0 ELSE log >> bits * (i - 1) & mask END < gone)
           END AS kept
    FROM quieted
    LIMIT 1
),
judged AS (
    SELECT *,
           CASE WHEN :verb <> 'spend' THEN 0
                WHEN :cost = 0 THEN :times
                ELSE min(:times, (:failures - kept) / :cost)
           END AS granted
    FROM calmed
    LIMIT 1
),
placed AS (
    SELECT *,
           CASE :verb WHEN 'spend' THEN granted * :cost
                      WHEN 'charge' THEN min(:units, :failures - kept)
                      ELSE 0
           END AS added,
           last_step - (:stamp / :grain + (:stamp % :grain > 0)) AS match
    FROM judged
    LIMIT 1
),
-- give_back: of several tries in one grain the earlier ones, which lie behind.
found AS (
    SELECT *,
           (SELECT count(*) FROM place
            WHERE i < taken
              AND CASE i WHEN 0 THEN 0 ELSE log >> bits * (i - 1) & mask END < match) AS before,
           (SELECT count(*) FROM place
            WHERE i < taken
              AND CASE i WHEN 0 THEN 0 ELSE log >> bits * (i - 1) & mask END = match) AS equal
    FROM placed
    LIMIT 1
),
ranged AS (
    SELECT *,
           before + equal - min(:units, equal) AS from_place,
           before + equal AS to_place,
           CASE :verb WHEN 'give_back' THEN min(:units, equal) > 0 ELSE added > 0 END AS changed
    FROM found
    LIMIT 1
),
led AS (
    SELECT *,
           CASE WHEN from_place = 0 AND to_place > 0 AND to_place < taken
                THEN log >> bits * (to_place - 1) & mask
                ELSE 0
           END AS ahead
    FROM ranged
    LIMIT 1
),
made AS (
    SELECT *,
           CASE :verb WHEN 'give_back' THEN taken - (to_place - from_place) ELSE kept + added END
               AS made_taken,
           CASE :verb WHEN 'give_back' THEN level ELSE level_now END AS made_level,
           CASE :verb WHEN 'give_back' THEN ended ELSE ended_now END AS made_ended,
           CASE WHEN :verb <> 'give_back' THEN here
                WHEN ahead > 0 THEN :grain * (last_step - ahead)
                ELSE last
           END AS made_last,
           CASE :verb
               WHEN 'give_back'
               THEN (SELECT ifnull(sum(((log >> bits * (i - 1) & mask) - ahead)
                                       << bits * (i - 1
                                          - CASE WHEN i < from_place THEN 0
                                                 ELSE to_place - from_place END)), 0)
                     FROM place
                     WHERE i < taken AND i > 0 AND (i < from_place OR i >= to_place)
                       AND (from_place > 0 OR i > to_place))
               ELSE (SELECT ifnull(sum((since + CASE i WHEN 0 THEN 0
                                                       ELSE log >> bits * (i - 1) & mask END)
                                       << bits * (added + i - 1)), 0)
                     FROM place
                     WHERE i < kept AND added > 0)
           END AS made_log
    FROM led
    LIMIT 1
),
measured AS (
    SELECT *,
           CASE WHEN :first > :longest >> made_level THEN :longest ELSE :first << made_level END
               AS made_whole,
           max(made_last, 0) / 1000 % 1000003 * 7919 % 1009 % (:part + 1) AS made_drawn
    FROM made
    LIMIT 1
),
ending AS (
    SELECT *,
           made_last + made_whole * 1000000000 + made_whole * 10000000 * made_drawn AS made_until,
           made_taken = 0 AND made_level = 0 AS untouched
    FROM measured
    LIMIT 1
)
SELECT granted, changed,
       CASE WHEN NOT changed THEN first WHEN made_taken = 0 THEN 0 ELSE made_last END,
       CASE WHEN NOT changed THEN second
            WHEN untouched THEN 0
            ELSE ~(made_taken | (made_level << 5) | (:failures << 10) | (made_ended << 15)
                   | (:mark << 48))
       END,
       CASE WHEN NOT changed THEN third WHEN made_taken = 0 THEN 0 ELSE made_log END,
       CASE WHEN untouched THEN 0
            WHEN made_taken >= :failures
            THEN (max(made_until / 1000000000 + (made_until % 1000000000 > 0), 0)
                  + :quiet * (made_level + (made_whole < :longest))) * 1000000000
            ELSE max(CASE WHEN made_level > 0 THEN (made_ended + :quiet * made_level) * 1000000000
                          ELSE 0 END,
                     CASE WHEN made_taken > 0
                          THEN (made_last / :grain + (made_last % :grain > 0)) * :grain + :window
                          ELSE 0 END)
       END
FROM ending;
