DELETE FROM weir_spent_tokens WHERE id BETWEEN ?1 AND ?2 AND expires < ?3;
