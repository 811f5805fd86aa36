// SPDX-License-Identifier: BSL-1.0
#pragma once

// The tables in PostgreSQL, and the functions that write to them. They are functions so that each
// is one statement for us: a lock that is taken in one is never held while a server of forms, or
// the network to it, stands still.

namespace forms::postgres {

/// Stands as a comment at the schema.
constexpr const char* schema_version = "weir-forms 1";

/// Needs CREATE on the database, or on a schema that is there. Sixteen at once are fine: two CREATE
/// SCHEMA IF NOT EXISTS at one moment are an error for one of them, hence the lock; and who has
/// waited for it may still remember that there was no schema, hence the look at the table.
constexpr const char* schema_text = R"(
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT pg_advisory_xact_lock(8532458734925714035);
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'weir_forms') THEN
        CREATE SCHEMA weir_forms;
    END IF;
END $$;
COMMENT ON SCHEMA weir_forms IS 'weir-forms 1';

CREATE TABLE IF NOT EXISTS weir_forms.endpoints (
    id       text PRIMARY KEY,
    active   boolean NOT NULL,
    made_at  text NOT NULL,
    revision bigint NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS weir_forms.submissions (
    seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    submission_id   text NOT NULL UNIQUE,
    endpoint_id     text NOT NULL,
    received_at     text NOT NULL,
    field_count     bigint NOT NULL,
    fields          text NOT NULL,
    idempotency_key text
);
CREATE INDEX IF NOT EXISTS submissions_of_endpoint ON weir_forms.submissions (endpoint_id, seq);
CREATE UNIQUE INDEX IF NOT EXISTS submissions_once
    ON weir_forms.submissions (endpoint_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Rows come and go, and a claim rewrites them in place.
CREATE TABLE IF NOT EXISTS weir_forms.deliveries (
    seq        bigint PRIMARY KEY,
    claimed_at timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_insert_threshold = -1);

-- What was not stored comes back as the original with the same key, beside its place in the
-- arrays. The lock makes the order of seq the order of commits: whoever reads on behind a seq
-- misses nothing.
CREATE OR REPLACE FUNCTION weir_forms.write(
    ids text[], endpoint_ids text[], received text[], counts bigint[], contents text[],
    keys text[], delivered bigint[])
RETURNS TABLE (
    place bigint, id text, endpoint text, received_at text, fields text, field_count bigint)
LANGUAGE plpgsql AS $$
DECLARE
    stored bigint;
BEGIN
    SET LOCAL lock_timeout = '1s';
    -- Plans are kept, and the first are made while the tables are small enough to be read through.
    SET LOCAL enable_seqscan = off;
    DELETE FROM weir_forms.deliveries AS d WHERE d.seq = ANY (delivered);
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(8532458734925714036);
    WITH kept AS (
        INSERT INTO weir_forms.submissions AS s
            (submission_id, endpoint_id, received_at, field_count, fields, idempotency_key)
        SELECT g.id, g.endpoint, g.received, g.count, g.content, g.key
        FROM unnest(ids, endpoint_ids, received, counts, contents, keys) WITH ORDINALITY
            AS g (id, endpoint, received, count, content, key, n)
        ORDER BY g.n
        ON CONFLICT (endpoint_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
        RETURNING s.seq)
    INSERT INTO weir_forms.deliveries (seq) SELECT k.seq FROM kept AS k;
    GET DIAGNOSTICS stored = ROW_COUNT;
    IF stored < cardinality(ids) THEN
        RETURN QUERY
            SELECT g.n, s.submission_id, s.endpoint_id, s.received_at, s.fields, s.field_count
            FROM unnest(ids, endpoint_ids, keys) WITH ORDINALITY AS g (id, endpoint, key, n)
            JOIN weir_forms.submissions AS s
                ON s.endpoint_id = g.endpoint AND s.idempotency_key = g.key
            WHERE s.submission_id <> g.id;
    END IF;
END $$;

-- Makes one, or changes one that there is (made is NULL). The lock makes the order of revisions the
-- order of commits.
CREATE OR REPLACE FUNCTION weir_forms.set_endpoint(name text, is_active boolean, made text)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    next bigint;
BEGIN
    SET LOCAL lock_timeout = '1s';
    PERFORM pg_advisory_xact_lock(8532458734925714037);
    SELECT coalesce(max(e.revision), 0) + 1 INTO next FROM weir_forms.endpoints AS e;
    IF made IS NULL THEN
        UPDATE weir_forms.endpoints AS e SET active = is_active, revision = next WHERE e.id = name;
    ELSE
        INSERT INTO weir_forms.endpoints (id, active, made_at, revision)
            VALUES (name, is_active, made, next) ON CONFLICT DO NOTHING;
    END IF;
    RETURN FOUND;
END $$;
COMMIT;
)";

}  // namespace forms::postgres
