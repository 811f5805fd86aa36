SELECT full_from, full_until FROM weir_calendars WHERE name = ?1;
