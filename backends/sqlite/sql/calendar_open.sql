-- Takes the right to write before anything is looked at.
INSERT INTO weir_calendars (name, caps) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET
    full_from  = CASE WHEN caps = excluded.caps THEN full_from ELSE 0 END,
    full_until = CASE WHEN caps = excluded.caps THEN full_until ELSE 0 END,
    caps       = excluded.caps;
