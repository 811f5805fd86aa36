-- One table for all policies. A policy's state is three whole numbers, whose meaning its own text
-- knows (spend_*.sql). SQLite turns a whole number that grows over 63 bits into a REAL without a
-- word; the checks turn that into an error.
CREATE TABLE IF NOT EXISTS weir_counters (
    key          BLOB    NOT NULL PRIMARY KEY CHECK (typeof(key) = 'blob' AND length(key) = 16),
    first        INTEGER NOT NULL CHECK (typeof(first) = 'integer'),
    second       INTEGER NOT NULL CHECK (typeof(second) = 'integer'),
    third        INTEGER NOT NULL CHECK (typeof(third) = 'integer'),
    recovered_at INTEGER NOT NULL CHECK (typeof(recovered_at) = 'integer')
) WITHOUT ROWID;
INSERT OR IGNORE INTO weir_meta (name, value) VALUES ('version', 1);
