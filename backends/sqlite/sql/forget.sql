DELETE FROM weir_counters WHERE key = :key;
