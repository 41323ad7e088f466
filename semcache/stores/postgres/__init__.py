"""A store in PostgreSQL."""
