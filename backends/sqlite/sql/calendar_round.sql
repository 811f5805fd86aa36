UPDATE weir_calendars SET round = max(round, ?2) WHERE name = ?1;
