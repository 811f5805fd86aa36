-- Deletes rows that recovered `keep` nanoseconds ago or longer, among `blocks` pages of the table
-- from `from_block` on, and tells where to go on: 0 at the end of the table, so that sweeps go
-- round. Reads those pages only, whatever the table's size, and no index. A row that somebody has
-- locked is passed over and nothing is waited for; a row that changed meanwhile is judged anew,
-- once it is locked. `keep` must be longer than a statement may wait before it comes to its row: it
-- is judged by the time at which it began, and to that time a row that was swept meanwhile may
-- still have been alive.
CREATE OR REPLACE FUNCTION weir.sweep(from_block bigint, blocks bigint, keep bigint,
                                      OUT next bigint, OUT deleted bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    cutoff bigint :=
        (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint - keep;
    pages  bigint :=
        pg_relation_size('weir.counters') / current_setting('block_size')::bigint;
    head   tid    := format('(%s,0)', from_block);
    stop   tid    := format('(%s,0)', least(from_block + blocks, 4294967295));
BEGIN
    DELETE FROM weir.counters AS c
    WHERE c.recovered_at <= cutoff
      AND c.ctid = ANY (ARRAY(
          SELECT d.ctid FROM weir.counters AS d
          WHERE d.ctid >= head AND d.ctid < stop AND d.recovered_at <= cutoff
          FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS deleted = ROW_COUNT;
    next := CASE WHEN from_block + blocks < pages THEN from_block + blocks ELSE 0 END;
END $$;
