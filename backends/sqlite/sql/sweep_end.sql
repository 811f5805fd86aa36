-- Where a sweep that begins after :key ends: as many rows on, or nothing at the end of the table.
SELECT key FROM weir_counters WHERE key > :key ORDER BY key LIMIT 1 OFFSET :rows;
