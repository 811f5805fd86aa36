-- SPDX-License-Identifier: BSL-1.0
-- One attempt at a form under two limits as a plain server would write it, for pgbench: a statement for
-- the window of the source, one for that of the form, one for the submission and its place in the queue.
-- Without the lines BEGIN and COMMIT each is a transaction by itself. Variables: how many of ten attempts
-- are of strangers, who were never seen before; clients, of whom the others are, and whether Zipf's law
-- says how often; per_source and per_form, the limits; and the fields. A refused attempt is not counted,
-- as in weir-forms.
\set one_of_ten random(1, 10)
\if :one_of_ten <= :strangers
\set source random(1000000, 1000000000000000)
\elif :zipf
\set source random_zipfian(1, :clients, 1.1)
\else
\set source random(1, :clients)
\endif
BEGIN;
WITH fits AS (
    INSERT INTO plain.counters AS c (name, began, used)
    VALUES ('ip ' || :source::text, floor(extract(epoch FROM statement_timestamp()) / 31536000), 1)
    ON CONFLICT (name) DO UPDATE SET began = excluded.began,
        used = CASE WHEN c.began = excluded.began THEN c.used + 1 ELSE 1 END
    WHERE c.began < excluded.began OR c.used < :per_source
    RETURNING 1)
SELECT count(*) AS source_fits FROM fits \gset
\if :source_fits
WITH fits AS (
    INSERT INTO plain.counters AS c (name, began, used)
    VALUES ('form bench', floor(extract(epoch FROM statement_timestamp()) / 31536000), 1)
    ON CONFLICT (name) DO UPDATE SET began = excluded.began,
        used = CASE WHEN c.began = excluded.began THEN c.used + 1 ELSE 1 END
    WHERE c.began < excluded.began OR c.used < :per_form
    RETURNING 1)
SELECT count(*) AS form_fits FROM fits \gset
\if :form_fits
WITH kept AS (
    INSERT INTO plain.submissions (submission_id, endpoint_id, received_at, field_count, fields)
    VALUES ('019c1300-0000-7000-8000-' || lpad(to_hex(nextval('plain.made')), 12, '0'), 'bench',
            '2026-01-31T12:00:00.000Z', 3, :fields)
    RETURNING seq)
INSERT INTO plain.deliveries (seq) SELECT seq FROM kept;
\endif
\endif
COMMIT;
