-- Tokens of forms that were used, each once, within the transaction of what they were used for.
-- Beside schema.sql, and independent of it. A program that only uses it needs USAGE on the schema,
-- SELECT, INSERT, UPDATE, DELETE on spent_tokens, SELECT on meta.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL client_min_messages = warning;
DO $$ BEGIN PERFORM pg_advisory_xact_lock(8532458734925714034); END $$;

DO $$
BEGIN
    IF to_regnamespace('weir') IS NULL THEN
        CREATE SCHEMA weir;
    END IF;
EXCEPTION WHEN duplicate_schema OR unique_violation THEN NULL;
END $$;

CREATE TABLE IF NOT EXISTS weir.meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

DO $$
BEGIN
    IF EXISTS (SELECT FROM weir.meta AS m WHERE m.name = 'spent_tokens' AND m.value <> '1') THEN
        RAISE EXCEPTION 'this table of tokens is of another version, and is left as it is'
            USING HINT = 'Upgrade the program that brought this text.';
    END IF;
END $$;

CREATE TABLE IF NOT EXISTS weir.spent_tokens (
    id      uuid   PRIMARY KEY,
    expires bigint NOT NULL  -- nanoseconds since 1970
);

-- 0: it was not used before, and is from the commit on. 1: it was. 2: of the tokens from `low` to
-- `high` there are `most`. Those that expired before `cutoff` are forgotten, unless somebody else
-- forgets them just now. Of two transactions with one token the second waits for the first's end.
CREATE OR REPLACE FUNCTION weir.spend_token(
    token uuid, good_until bigint, cutoff bigint, low uuid, high uuid, most bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    made integer;
BEGIN
    DELETE FROM weir.spent_tokens AS t WHERE t.id IN (
        SELECT d.id FROM weir.spent_tokens AS d
        WHERE d.id BETWEEN low AND high AND d.expires < cutoff FOR UPDATE SKIP LOCKED);
    INSERT INTO weir.spent_tokens (id, expires) VALUES (token, good_until) ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made = 0 THEN
        RETURN 1;
    END IF;
    IF (SELECT count(*) FROM weir.spent_tokens AS t WHERE t.id BETWEEN low AND high) > most THEN
        DELETE FROM weir.spent_tokens AS t WHERE t.id = token;
        RETURN 2;
    END IF;
    RETURN 0;
END $$;

INSERT INTO weir.meta (name, value) VALUES ('spent_tokens', '1') ON CONFLICT (name) DO NOTHING;
COMMIT;
