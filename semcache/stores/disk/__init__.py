"""A store in a directory, in tables of SQLite."""
