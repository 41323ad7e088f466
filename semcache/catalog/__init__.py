"""Catalog: what a plan may call. Pure: no I/O."""
