INSERT INTO weir_calendar_windows (calendar, span, number, used) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (calendar, span, number) DO UPDATE SET used = excluded.used;
