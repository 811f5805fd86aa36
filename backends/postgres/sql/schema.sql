-- Rate limits shared by many processes: the table, the arithmetic of each policy, and the functions
-- that programs call. Run it as the role that shall own it, as often as you like, by hand or from
-- sixteen programs at once: one transaction, under one lock.
--
-- Needs PostgreSQL 14, no extension, no superuser: CREATE on the database, or on a schema that is
-- there already. A program that only uses it needs
--     USAGE on the schema, SELECT, INSERT, UPDATE, DELETE on counters, SELECT, INSERT on meta,
-- and EXECUTE on the functions, which every role has unless it was revoked.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL client_min_messages = warning;

-- Before anything else: two CREATE SCHEMA IF NOT EXISTS at once are an error for one of them.
DO $$ BEGIN PERFORM pg_advisory_xact_lock(8532458734925714034); END $$;

DO $$
BEGIN
    -- Where it is there, CREATE on the database is not asked for. A session may remember from before
    -- the lock that there was none.
    IF to_regnamespace('weir') IS NULL THEN
        CREATE SCHEMA weir;
    END IF;
EXCEPTION WHEN duplicate_schema OR unique_violation THEN NULL;
END $$;

-- What a program looks at before it trusts the rest: 'version' of all this, and under 'secret' a
-- fingerprint of the secret under which keys are made, written by the first program.
CREATE TABLE IF NOT EXISTS weir.meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

DO $$
BEGIN
    IF EXISTS (SELECT FROM weir.meta AS m WHERE m.name = 'version' AND m.value <> '1') THEN
        RAISE EXCEPTION 'this schema is of another version, and is left as it is'
            USING HINT = 'Upgrade the program that brought this text.';
    END IF;
END $$;

-- One table for all policies. A policy's state is three whole numbers, whose meaning its own
-- function knows; instants are nanoseconds since 1970. For a table that is not logged, thus faster,
-- and empty after a crash of the server, write UNLOGGED before TABLE; one that is there already
-- changes by ALTER TABLE … SET UNLOGGED.
--
-- Almost every statement rewrites a row in place: the free third of each page, and no index on what
-- is written, let the new version stay in its page (HOT) and touch no index. Keys are digests, so
-- nothing ever looks for a range of them or of instants; the sweep goes by pages.
CREATE TABLE IF NOT EXISTS weir.counters (
    key          uuid   PRIMARY KEY,
    first        bigint NOT NULL,
    second       bigint NOT NULL,
    third        bigint NOT NULL,
    recovered_at bigint NOT NULL,  -- from then on the row is as good as none, and may be swept
    granted      bigint NOT NULL   -- what the last ask was told; below 0: see the ask functions
) WITH (
    fillfactor = 70,
    -- What a sweep deleted gives its room and its index entries back only by a vacuum: soon, and
    -- not slowed down so much that sweeps outrun it.
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 2000,
    -- Rows live for a window or two: a vacuum because of mere inserts finds nothing to do, and
    -- statistics, of which no plan here makes use, would be gathered again and again.
    autovacuum_vacuum_insert_threshold = -1,
    autovacuum_analyze_threshold = 2000000000
);

DO $$
BEGIN
    IF to_regtype('weir.outcome') IS NULL THEN
        CREATE TYPE weir.outcome AS (
            first bigint, second bigint, third bigint, recovered_at bigint, granted bigint);
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
