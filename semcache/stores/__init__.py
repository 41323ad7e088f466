"""Stores: where records and vectors are kept."""
