DELETE FROM weir_calendar_windows WHERE calendar = ?1 AND span = ?2 AND number < ?3;
