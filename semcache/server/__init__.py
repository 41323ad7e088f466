"""Doors for other processes."""
