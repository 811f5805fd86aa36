-- Calendar caps within the caller's own transaction: the places that are held, what waits for one,
-- and the functions that programs call. Beside schema.sql, and independent of it. Run it as the
-- role that shall own it, as often as you like. A program that only uses it needs USAGE on the
-- schema, SELECT, INSERT, UPDATE, DELETE on places and the tables named calendar_…, SELECT on meta.
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
    IF EXISTS (SELECT FROM weir.meta AS m WHERE m.name = 'calendar' AND m.value <> '1') THEN
        RAISE EXCEPTION 'this calendar is of another version, and is left as it is'
            USING HINT = 'Upgrade the program that brought this text.';
    END IF;
END $$;

-- A place is a slot of an hour and a slot of a day, both numbered from 0 and below the cap. The two
-- keys are what makes the caps exact: no slot can be given twice, whatever else goes wrong. Hours
-- are counted since 1970, days likewise from their own start.
CREATE TABLE IF NOT EXISTS weir.places (
    calendar text    NOT NULL,
    hour     bigint  NOT NULL,
    slot     integer NOT NULL,
    day      bigint  NOT NULL,
    day_slot integer NOT NULL,
    PRIMARY KEY (calendar, hour, slot),
    UNIQUE (calendar, day, day_slot)
);

-- What waits for a window, in the order in which it goes: round by round, in each one of a source.
CREATE TABLE IF NOT EXISTS weir.calendar_waiting (
    calendar text   NOT NULL,
    round    bigint NOT NULL,
    arrived  bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    item     text   NOT NULL,
    PRIMARY KEY (calendar, round, arrived)
);
CREATE TABLE IF NOT EXISTS weir.calendar_sources (
    calendar text   NOT NULL,
    source   uuid   NOT NULL,
    round    bigint NOT NULL,  -- of its last item
    PRIMARY KEY (calendar, source)
);
CREATE TABLE IF NOT EXISTS weir.calendar_rounds (
    calendar text PRIMARY KEY,
    round    bigint NOT NULL  -- of what was released last
);

-- A slot of an hour, from `lowest` on, that nobody has and nobody is about to have; it is held
-- until the transaction ends. -1: all slots are given, for good. -2: others are about to have the rest.
-- Nobody is waited for, so any number of transactions place side by side. Slots lie one after the
-- other but for those of transactions that were rolled back, which come last. Who had the lock
-- before may have committed since the look at `top`: hence another look once it is held, and as a
-- statement of its own, for an expression sees what was there when it began.
CREATE OR REPLACE FUNCTION weir.slot_of_hour(
    which text, base bigint, wanted bigint, lowest integer, cap integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    top   integer;
    tried integer;
BEGIN
    SELECT max(p.slot) INTO top
    FROM weir.places AS p WHERE p.calendar = which AND p.hour = wanted;
    FOR tried IN greatest(coalesce(top + 1, 0), lowest) .. cap - 1 LOOP
        IF pg_try_advisory_xact_lock(base # ((wanted * 2) << 20 | tried)) THEN
            IF NOT EXISTS (SELECT FROM weir.places AS p
                           WHERE p.calendar = which AND p.hour = wanted AND p.slot = tried) THEN
                RETURN tried;
            END IF;
        END IF;
    END LOOP;
    IF top IS NULL THEN RETURN -2; END IF;
    IF (SELECT count(*) FROM weir.places AS p
        WHERE p.calendar = which AND p.hour = wanted) >= cap THEN
        RETURN -1;
    END IF;
    FOR tried IN
        SELECT s FROM generate_series(lowest, least(top, cap - 1)) AS s
        WHERE NOT EXISTS (SELECT FROM weir.places AS p
                          WHERE p.calendar = which AND p.hour = wanted AND p.slot = s)
        ORDER BY s
    LOOP
        IF pg_try_advisory_xact_lock(base # ((wanted * 2) << 20 | tried)) THEN
            IF NOT EXISTS (SELECT FROM weir.places AS p
                           WHERE p.calendar = which AND p.hour = wanted AND p.slot = tried) THEN
                RETURN tried;
            END IF;
        END IF;
    END LOOP;
    RETURN -2;
END $$;

-- The same for a day.
CREATE OR REPLACE FUNCTION weir.slot_of_day(which text, base bigint, wanted bigint, cap integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    top   integer;
    tried integer;
BEGIN
    SELECT max(p.day_slot) INTO top
    FROM weir.places AS p WHERE p.calendar = which AND p.day = wanted;
    FOR tried IN coalesce(top + 1, 0) .. cap - 1 LOOP
        IF pg_try_advisory_xact_lock(base # ((wanted * 2 + 1) << 20 | tried)) THEN
            IF NOT EXISTS (SELECT FROM weir.places AS p
                           WHERE p.calendar = which AND p.day = wanted AND p.day_slot = tried) THEN
                RETURN tried;
            END IF;
        END IF;
    END LOOP;
    IF top IS NULL THEN RETURN -2; END IF;
    IF (SELECT count(*) FROM weir.places AS p
        WHERE p.calendar = which AND p.day = wanted) >= cap THEN
        RETURN -1;
    END IF;
    FOR tried IN
        SELECT s FROM generate_series(0, least(top, cap - 1)) AS s
        WHERE NOT EXISTS (SELECT FROM weir.places AS p
                          WHERE p.calendar = which AND p.day = wanted AND p.day_slot = s)
        ORDER BY s
    LOOP
        IF pg_try_advisory_xact_lock(base # ((wanted * 2 + 1) << 20 | tried)) THEN
            IF NOT EXISTS (SELECT FROM weir.places AS p
                           WHERE p.calendar = which AND p.day = wanted AND p.day_slot = tried) THEN
                RETURN tried;
            END IF;
        END IF;
    END LOOP;
    RETURN -2;
END $$;

-- Holds the first place from `at` on (nanoseconds since 1970; null: the time of the statement), or
-- with `only_now` one at `at` itself. `caps`: per_hour, per_day, spread (0 or 1), day_starts (hours
-- after midnight), horizon (hours). Hours from `full_from` to before `full_until` are known to be
-- full and are passed over; what became known is returned. `hour` is null if there is no room.
CREATE OR REPLACE FUNCTION weir.place(
    which text, caps bigint[], only_now boolean, at bigint, full_from bigint, full_until bigint,
    OUT release bigint, OUT judged bigint, OUT hour bigint, OUT slot integer,
    OUT known_from bigint, OUT known_until bigint, OUT steps integer)
LANGUAGE plpgsql AS $$
DECLARE
    ns_of_hour constant bigint := 3600000000000;
    base       constant bigint := hashtextextended('weir places ' || which, 0);
    first      bigint;
    past       bigint;
    looked     bigint;
    least_slot integer;
    last_slot  integer;
    now_day    bigint;
    held_day   bigint;
    held       integer;
    learns     boolean;
    made       integer;
BEGIN
    judged := coalesce(at, (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint);
    steps  := 0;
    first  := judged / ns_of_hour;
    looked := first;
    -- Rows of this very transaction are not there for good.
    learns := current_setting('weir.placed', true) IS DISTINCT FROM '1';
    known_from := first;

    LOOP
        IF looked >= full_from AND looked < full_until AND NOT only_now THEN
            looked := full_until;
        END IF;
        EXIT WHEN looked >= first + caps[5] OR (only_now AND looked > first) OR judged < 0;
        steps      := steps + 1;
        past       := greatest(judged - looked * ns_of_hour, 0) * caps[1];
        least_slot := 0;
        last_slot  := caps[1];
        IF caps[3] = 1 AND only_now THEN
            least_slot := past / ns_of_hour;
            last_slot  := least_slot + 1;
        ELSIF caps[3] = 1 THEN
            least_slot := (past + ns_of_hour - 1) / ns_of_hour;
        END IF;

        now_day := looked - caps[4];
        now_day := (now_day - ((now_day % 24) + 24) % 24) / 24;
        IF held_day IS DISTINCT FROM now_day THEN
            held_day := now_day;
            held     := weir.slot_of_day(which, base, now_day, caps[2]::integer);
        END IF;
        IF held < 0 THEN
            learns := learns AND held = -1;
            looked := (now_day + 1) * 24 + caps[4];
            IF learns THEN known_until := looked; END IF;
            CONTINUE;
        END IF;

        slot := weir.slot_of_hour(which, base, looked, least_slot, last_slot);
        IF slot < 0 THEN
            IF slot = -1 OR looked > first OR caps[3] = 0 THEN
                learns := learns AND slot = -1;
            ELSE
                known_from := looked + 1;  -- its slots have passed, and are not used
            END IF;
            looked := looked + 1;
            IF learns THEN known_until := looked; END IF;
            CONTINUE;
        END IF;

        -- Both are this transaction's alone; the keys say so once more.
        INSERT INTO weir.places (calendar, hour, slot, day, day_slot)
        VALUES (which, looked, slot, now_day, held) ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS made = ROW_COUNT;
        IF made = 0 THEN
            held_day := NULL;
            CONTINUE;
        END IF;
        hour    := looked;
        release := looked * ns_of_hour;
        IF caps[3] = 1 THEN
            release := release + ns_of_hour * slot / caps[1];
        END IF;
        release := greatest(judged, release);
        PERFORM set_config('weir.placed', '1', true);
        RETURN;
    END LOOP;
    slot := NULL;
END $$;

-- Puts an item behind what waits of its source. Waits for that source's own transactions only.
CREATE OR REPLACE FUNCTION weir.enqueue(which text, from_source uuid, what text)
RETURNS void LANGUAGE sql AS $$
    WITH turn AS (
        INSERT INTO weir.calendar_sources AS s (calendar, source, round)
        VALUES (which, from_source, coalesce(
            (SELECT r.round FROM weir.calendar_rounds AS r WHERE r.calendar = which), 0))
        ON CONFLICT (calendar, source) DO UPDATE SET round = greatest(s.round + 1, excluded.round)
        RETURNING s.round)
    INSERT INTO weir.calendar_waiting (calendar, round, item)
    SELECT which, turn.round, what FROM turn;
$$;

-- Takes what may go at `at` out of the queue, `most` items at most, and holds places for it. One
-- transaction at a time: programs that release wait here for one another, and for nobody else.
CREATE OR REPLACE FUNCTION weir.release(which text, caps bigint[], at bigint, most bigint)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    head record;
    last bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('weir release ' || which, 0));
    FOR i IN 1 .. most LOOP
        SELECT w.round, w.arrived, w.item INTO head FROM weir.calendar_waiting AS w
        WHERE w.calendar = which ORDER BY w.round, w.arrived LIMIT 1;
        EXIT WHEN NOT FOUND;
        EXIT WHEN (weir.place(which, caps, true, at, 0, 0)).hour IS NULL;
        DELETE FROM weir.calendar_waiting AS w
        WHERE w.calendar = which AND w.round = head.round AND w.arrived = head.arrived;
        last := head.round;
        RETURN NEXT head.item;
    END LOOP;
    IF last IS NOT NULL THEN
        INSERT INTO weir.calendar_rounds AS r (calendar, round) VALUES (which, last)
        ON CONFLICT (calendar) DO UPDATE SET round = greatest(r.round, excluded.round)
        RETURNING r.round INTO last;
        -- A source whose last round has passed is as good as a new one.
        DELETE FROM weir.calendar_sources AS s
        WHERE s.calendar = which AND s.source IN (
            SELECT d.source FROM weir.calendar_sources AS d
            WHERE d.calendar = which AND d.round < last LIMIT 1000 FOR UPDATE SKIP LOCKED);
    END IF;
END $$;

-- Deletes places of hours before `oldest`, and tells how many.
CREATE OR REPLACE FUNCTION weir.forget_places(which text, oldest bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM weir.places AS p WHERE p.calendar = which AND p.hour < oldest;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

INSERT INTO weir.meta (name, value) VALUES ('calendar', '1') ON CONFLICT (name) DO NOTHING;
COMMIT;
