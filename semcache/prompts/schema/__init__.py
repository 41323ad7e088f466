"""Schemas: what a prompt asks for in the words of a catalog, and the keys of that."""
