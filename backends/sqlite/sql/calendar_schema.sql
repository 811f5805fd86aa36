-- Calendar caps within the caller's own transaction. SQLite lets one write at a time, so plain counts
-- are exact. Hours and days are counted since 1970, days from their own start.
CREATE TABLE IF NOT EXISTS weir_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS weir_calendars (
    name       TEXT    NOT NULL PRIMARY KEY,
    caps       TEXT    NOT NULL,            -- with others the hours below may have room again
    full_from  INTEGER NOT NULL DEFAULT 0,  -- hours from here
    full_until INTEGER NOT NULL DEFAULT 0,  -- to before this one have no place left
    round      INTEGER NOT NULL DEFAULT 0   -- of what was released last
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS weir_calendar_windows (
    calendar TEXT    NOT NULL,
    span     INTEGER NOT NULL,  -- 1: an hour, 24: a day
    number   INTEGER NOT NULL,
    used     INTEGER NOT NULL,  -- of a day: places; of an hour: the slot after the last one
    PRIMARY KEY (calendar, span, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS weir_calendar_sources (
    calendar TEXT    NOT NULL,
    source   BLOB    NOT NULL,
    round    INTEGER NOT NULL,  -- of its last item
    PRIMARY KEY (calendar, source)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS weir_calendar_waiting (
    arrived  INTEGER PRIMARY KEY AUTOINCREMENT,
    calendar TEXT    NOT NULL,
    round    INTEGER NOT NULL,
    item     TEXT    NOT NULL
);
CREATE INDEX IF NOT EXISTS weir_calendar_order
    ON weir_calendar_waiting (calendar, round, arrived);
INSERT OR IGNORE INTO weir_meta (name, value) VALUES ('calendar', 1);
