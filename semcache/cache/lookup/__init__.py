"""Lookup: the tiers in their order, from a query to a hit or a miss."""
