-- The state that a spend_*.sql made.
INSERT INTO weir_counters (key, first, second, third, recovered_at)
VALUES (:key, :first, :second, :third, :recovered_at)
ON CONFLICT (key) DO UPDATE SET
    first        = excluded.first,
    second       = excluded.second,
    third        = excluded.third,
    recovered_at = excluded.recovered_at;
