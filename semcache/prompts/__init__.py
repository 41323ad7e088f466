"""Prompts: what stands in them, their template text, schema and key. Pure: no I/O."""
