"""Records in a relational database: tables and statements that SQLite and PostgreSQL share."""
