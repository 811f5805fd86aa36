-- The words of each key as they are, in the order of `keys`; zeros and no `granted` where there is
-- no row. Waits for nobody. A plan is kept for as long as a connection, and the table may have been
-- small when it was made: hence no sequential scan.
CREATE OR REPLACE FUNCTION weir.look(keys uuid[])
RETURNS TABLE (key uuid, first bigint, second bigint, third bigint, granted bigint, at bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    now bigint := (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint;
BEGIN
    RETURN QUERY
    SELECT u.key, coalesce(c.first, 0), coalesce(c.second, 0), coalesce(c.third, 0),
           CASE WHEN c.key IS NOT NULL THEN 0::bigint END, now
    FROM unnest(keys) WITH ORDINALITY AS u (key, place)
         LEFT JOIN weir.counters AS c ON c.key = u.key
    ORDER BY u.place;
END $$;
