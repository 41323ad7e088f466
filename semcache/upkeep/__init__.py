"""Upkeep: what an operator does to a cache: examine, verify, compact, move, warm."""
