-- What a process looks at before it trusts the file: the version of the layout, and a digest of
-- the secret under which keys are made.
CREATE TABLE IF NOT EXISTS weir_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
