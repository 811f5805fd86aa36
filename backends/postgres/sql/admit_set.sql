-- All or nothing: spends of several limiters, one after the other, which are undone if any is refused.
-- `keys` must come in the order of keys, so that two sets never wait for one another in a circle; a
-- key may come twice. `policies` names the policy of each, `numbers` has six for each as for the ask
-- functions, with `times` 1. All are tried, so that each that refuses is named. Returns five numbers
-- for each: the words after it, what it was granted, 1 or 0, and `at`. Rows stay, and locks are held,
-- only if all were granted.
CREATE OR REPLACE FUNCTION weir.admit_set(keys uuid[], policies text[], numbers bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    six     bigint[];
    told    bigint[];
    all_of  bigint[] := '{}';
    refused boolean  := false;
BEGIN
    BEGIN
        FOR i IN 1 .. cardinality(keys) LOOP
            six := numbers[i * 6 - 5 : i * 6];
            CASE policies[i]
                WHEN 'fixed_window' THEN told := weir.ask_fixed_window(keys[i], six);
                WHEN 'gcra' THEN told := weir.ask_gcra(keys[i], six);
                WHEN 'sliding_window' THEN told := weir.ask_sliding_window(keys[i], six);
                ELSE
                    EXECUTE format('SELECT weir.%I($1, $2)', 'ask_' || policies[i])
                        INTO told USING keys[i], six;
            END CASE;
            all_of  := all_of || told;
            refused := refused OR told[4] = 0;
        END LOOP;
        IF refused THEN
            RAISE SQLSTATE 'WR000';  -- variables keep their values, rows do not
        END IF;
    EXCEPTION WHEN SQLSTATE 'WR000' THEN NULL;
    END;
    RETURN all_of;
END $$;
