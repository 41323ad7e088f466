"""Cache: plan templates found by template text, by schema, and by meaning."""
