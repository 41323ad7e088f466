"""Planners: from a prompt to a schema, and from a schema to a plan."""
