UPDATE weir_calendars SET full_from = ?2, full_until = ?3 WHERE name = ?1;
