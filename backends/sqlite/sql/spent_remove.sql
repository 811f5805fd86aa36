DELETE FROM weir_spent_tokens WHERE id = ?1;
