DELETE FROM weir_calendar_waiting WHERE arrived = ?1;
