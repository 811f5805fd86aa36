-- Tokens of forms that were used, each once.
CREATE TABLE IF NOT EXISTS weir_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS weir_spent_tokens (
    id      BLOB    NOT NULL PRIMARY KEY,
    expires INTEGER NOT NULL  -- nanoseconds since 1970
) WITHOUT ROWID;
INSERT OR IGNORE INTO weir_meta (name, value) VALUES ('spent_tokens', 1);
