"""Arguments: which property of an operation a value is for, and that value by its schema."""
