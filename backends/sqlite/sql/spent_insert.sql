INSERT OR IGNORE INTO weir_spent_tokens (id, expires) VALUES (?1, ?2);
