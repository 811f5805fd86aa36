-- The states of one guard's lockouts (spend_lockout.sql), for an operator: reads the whole table.
SELECT key, first, second, third FROM weir_counters
WHERE second < 0 AND (~second >> 48 & 4095) = :mark;
