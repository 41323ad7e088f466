"""Catalog: a set of operations (PLANS helper replaces this)."""


class Catalog:
    """Operations by name."""
