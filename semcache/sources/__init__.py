"""Sources: where operations come from."""
