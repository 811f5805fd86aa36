-- The words of all rows of one guard's lockouts, and the time, for an operator: reads the whole table.
CREATE OR REPLACE FUNCTION weir.marked(mark bigint)
RETURNS TABLE (key uuid, first bigint, second bigint, third bigint, at bigint)
LANGUAGE sql STABLE AS $$
    SELECT c.key, c.first, c.second, c.third,
           (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint
    FROM weir.counters AS c
    WHERE c.second < 0 AND ((~c.second >> 48) & 4095) = mark
$$;
