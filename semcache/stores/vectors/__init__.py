"""Nearest vectors, and the files that keep them."""
