-- An ask of a lockout. `first` is the instant of the last try, `third` the tries before it, each as how
-- many grains it lies back, the latest in the lowest bits, 62 / (failures - 1) bits for each. `second`
-- is below zero, which no other policy's is, and its complement holds, from the lowest bit: places
-- taken 5, level 5, failures that `third` is packed for 5, the second after which the last lockout
-- ended 33, the mark of the guard 12.
--   verb 0  spend: `times` callers of so many tries each, as many as find places
--   verb 1  charge: so many tries, as far as there are places
--   verb 2  give back: so many tries of the instant `cost`, before `lapses`
-- `most` holds failures 5, tries 5, hundredths of the random part 7, mark 12, and the quiet period in
-- seconds. For verbs 0 and 1 `length` is the window, `cost` the first lockout and from bit 30 on the
-- longest, in seconds, and `lapses` the grain; for verb 2 `length` is the grain and `times` the window.
-- Instants and lengths are nanoseconds where nothing else is said.
--
-- Nothing done: the words as they were, and no recovered_at, so that the row keeps its own.
CREATE OR REPLACE FUNCTION weir.lockout(
    verb bigint, first bigint, second bigint, third bigint,
    most bigint, length bigint, cost bigint, times bigint, lapses bigint, at bigint)
RETURNS SETOF weir.outcome LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 1 AS $$
DECLARE
    second_ns CONSTANT bigint := 1000000000;
    failures  bigint  := most & 31;
    tries     bigint  := most >> 5 & 31;
    quiet     bigint  := most >> 29;
    bits      integer := 62 / greatest(failures - 1, 1);
    rest      bigint  := CASE WHEN second < 0 THEN ~second ELSE 0 END;
    taken     bigint  := least(rest & 31, failures);
    level     bigint  := rest >> 5 & 31;
    ended     bigint  := rest >> 15 & 8589934591;
    log       bigint  := CASE WHEN rest >> 10 & 31 = failures THEN third ELSE 0 END;
    last      bigint  := first;
    win       bigint  := CASE verb WHEN 2 THEN times ELSE length END;
    grain     bigint  := CASE verb WHEN 2 THEN length ELSE lapses END;
    shortest  bigint  := cost & 1073741823;
    longest   bigint  := cost >> 30;
    whole     bigint;  -- of a lockout, in seconds
    until     bigint;
    back      bigint[];
    fresh     bigint[] := '{}';
    ahead     bigint  := 0;
    gone      bigint  := 0;
    granted   bigint  := 0;
    placed    bigint  := 0;
    recovers  bigint;
BEGIN
    FOR i IN 0 .. taken - 1 LOOP
        back[i] := CASE i WHEN 0 THEN 0
                          ELSE log >> (bits * (i - 1))::integer & ((1::bigint << bits) - 1) END;
    END LOOP;

    IF verb = 2 THEN
        -- Of several in one grain the earlier ones, which lie behind.
        IF at < lapses THEN
            ahead := (last + grain - 1) / grain - (cost + grain - 1) / grain;
            FOR i IN REVERSE taken - 1 .. 0 LOOP
                IF back[i] = ahead AND gone < tries THEN gone := gone + 1;
                ELSE fresh := back[i] || fresh;
                END IF;
            END LOOP;
        END IF;
        IF gone = 0 THEN
            RETURN QUERY SELECT first, second, third,
                                CASE WHEN second < 0 THEN NULL ELSE 0::bigint END, 0::bigint;
            RETURN;
        END IF;
        taken := cardinality(fresh);
        ahead := coalesce(fresh[1], 0);
        IF ahead > 0 THEN
            last := grain * ((last + grain - 1) / grain - ahead);
        END IF;
    ELSE
        IF taken > 0 AND last > at THEN
            -- Further ahead than a clock steps back: its trace is not believed.
            IF last - at > greatest(win, 3600 * second_ns) THEN
                taken := 0; level := 0; ended := 0;
            ELSE
                at := last;
            END IF;
        END IF;
        whole := CASE WHEN shortest > longest >> level::integer THEN longest
                      ELSE shortest << level::integer END;
        until := last + whole * second_ns
                      + whole * (second_ns / 100)
                        * (last / 1000 % 1000003 * 7919 % 1009 % ((most >> 10 & 127) + 1));
        IF taken >= failures AND at >= until THEN
            ended := (until + second_ns - 1) / second_ns;
            level := level + (whole < longest)::integer;
            taken := 0;
        END IF;
        IF taken < failures THEN
            placed := greatest(at / second_ns - ended, 0) / quiet;
            IF placed >= level THEN
                level := 0; ended := 0;
            ELSE
                level := level - placed; ended := ended + placed * quiet;
            END IF;
            ahead := (at + grain - 1) / grain - (last + grain - 1) / grain;
            gone  := (at + grain - 1) / grain - (at - win) / grain;
            FOR i IN 0 .. taken - 1 LOOP
                IF back[i] + ahead < gone THEN fresh := fresh || (back[i] + ahead); END IF;
            END LOOP;
            taken := cardinality(fresh);
        END IF;
        -- a cost of 0 fits always: least() passes over the NULL
        IF verb = 0 THEN granted := least(times, (failures - taken) / nullif(tries, 0)); END IF;
        placed := CASE verb WHEN 0 THEN granted * tries ELSE least(tries, failures - taken) END;
        IF placed = 0 THEN
            RETURN QUERY SELECT first, second, third,
                                CASE WHEN second < 0 THEN NULL ELSE 0::bigint END, granted;
            RETURN;
        END IF;
        fresh := array_fill(0::bigint, ARRAY[placed::integer]) || fresh;
        taken := taken + placed;
        last  := at;
        ahead := 0;
    END IF;

    IF taken = 0 AND level = 0 THEN
        RETURN QUERY SELECT 0::bigint, 0::bigint, 0::bigint, 0::bigint, granted;
        RETURN;
    END IF;
    log := 0;
    FOR i IN 2 .. taken LOOP
        log := log | ((fresh[i] - ahead) << (bits * (i - 2))::integer);
    END LOOP;
    IF taken >= failures THEN
        whole := CASE WHEN shortest > longest >> level::integer THEN longest
                      ELSE shortest << level::integer END;
        until := last + whole * second_ns
                      + whole * (second_ns / 100)
                        * (last / 1000 % 1000003 * 7919 % 1009 % ((most >> 10 & 127) + 1));
        recovers := ((until + second_ns - 1) / second_ns
                     + quiet * (level + (whole < longest)::integer)) * second_ns;
    ELSE
        recovers := greatest(
            CASE WHEN level > 0 THEN (ended + quiet * level) * second_ns ELSE 0 END,
            CASE WHEN taken > 0 THEN (last + grain - 1) / grain * grain + win ELSE 0 END);
    END IF;
    RETURN QUERY SELECT
        CASE WHEN taken > 0 THEN last ELSE 0 END,
        ~(taken | (level << 5) | (failures << 10) | (ended << 15) | ((most >> 17 & 4095) << 48)),
        log, recovers, granted;
END $$;
