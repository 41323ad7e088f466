"""The tasks format: tasks that read from one another."""
