SELECT first, second, third FROM weir_counters WHERE key = :key;
