-- A source whose last round has passed is as good as a new one.
DELETE FROM weir_calendar_sources WHERE calendar = ?1 AND round < ?2;
