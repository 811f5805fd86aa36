-- Asks of {policy} limiters for many keys, each once, in one statement and in the order of keys, so that two
-- of these never wait for one another in a circle. `numbers` has six for each key, in turn: verb,
-- two numbers of the limit, cost, times, lapses (see the function {policy}). The time of the
-- statement decides, and is told as `at`, in nanoseconds.
--
-- `granted` is how many of `times` were admitted. A row that was not there before tells minus its
-- place in `keys` instead, here and in the table: the place is how the statement finds the numbers of
-- a row, and what was granted to a fresh row its words say.
CREATE OR REPLACE FUNCTION weir.ask_{policy}(keys uuid[], numbers bigint[])
RETURNS TABLE (key uuid, first bigint, second bigint, third bigint, granted bigint, at bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now bigint := (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint;
BEGIN
    RETURN QUERY
    INSERT INTO weir.counters AS c (key, first, second, third, recovered_at, granted)
    SELECT u.key, o.first, o.second, o.third, o.recovered_at, -u.place
    FROM unnest(keys) WITH ORDINALITY AS u (key, place),
         LATERAL weir.{policy}(
             numbers[u.place * 6 - 5], 0, 0, 0,
             numbers[u.place * 6 - 4], numbers[u.place * 6 - 3], numbers[u.place * 6 - 2],
             numbers[u.place * 6 - 1], numbers[u.place * 6], now) AS o
    ORDER BY u.key
    ON CONFLICT (key) DO UPDATE SET (first, second, third, recovered_at, granted) = (
        SELECT o.first, o.second, o.third, coalesce(o.recovered_at, c.recovered_at), o.granted
        FROM weir.{policy}(
            numbers[excluded.granted * -6 - 5], c.first, c.second, c.third,
            numbers[excluded.granted * -6 - 4], numbers[excluded.granted * -6 - 3],
            numbers[excluded.granted * -6 - 2], numbers[excluded.granted * -6 - 1],
            numbers[excluded.granted * -6], now) AS o)
    RETURNING c.key, c.first, c.second, c.third, c.granted, now;
END $$;
