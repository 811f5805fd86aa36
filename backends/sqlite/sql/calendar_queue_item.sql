INSERT INTO weir_calendar_waiting (calendar, round, item)
SELECT ?1, round, ?3 FROM weir_calendar_sources WHERE calendar = ?1 AND source = ?2;
