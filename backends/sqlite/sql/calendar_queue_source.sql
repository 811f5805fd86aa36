INSERT INTO weir_calendar_sources (calendar, source, round)
SELECT ?1, ?2, ifnull((SELECT round FROM weir_calendars WHERE name = ?1), 0) WHERE true
ON CONFLICT (calendar, source) DO UPDATE SET round = max(round + 1, excluded.round);
