"""A sales service over a real database, and prompts whose answers are checked against SQL."""
