SELECT arrived, round, item FROM weir_calendar_waiting WHERE calendar = ?1
ORDER BY round, arrived LIMIT 1;
