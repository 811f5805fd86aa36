-- Keys are digests, so that rows of all ages lie side by side: a sweep goes round by key and needs
-- no index on time, which each spend would have to write.
DELETE FROM weir_counters WHERE key > :key AND key <= :last AND recovered_at <= :cutoff;
