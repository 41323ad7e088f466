"""Entries: what the cache keeps of one planned prompt, and how it is made and written."""
