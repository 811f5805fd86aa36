-- Deletes the rows of `keys`, locked in the order of keys as the asks lock them, and only those
-- that were locked so. Returns what look() returns of keys without a row.
CREATE OR REPLACE FUNCTION weir.forget(keys uuid[])
RETURNS TABLE (key uuid, first bigint, second bigint, third bigint, granted bigint, at bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    now    bigint := (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint;
    locked uuid[];
BEGIN
    locked := ARRAY(SELECT c.key FROM weir.counters AS c WHERE c.key = ANY (keys)
                    ORDER BY c.key FOR UPDATE);
    DELETE FROM weir.counters AS c WHERE c.key = ANY (locked);
    RETURN QUERY
    SELECT u.key, 0::bigint, 0::bigint, 0::bigint, NULL::bigint, now
    FROM unnest(keys) WITH ORDINALITY AS u (key, place)
    ORDER BY u.place;
END $$;
