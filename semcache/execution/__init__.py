"""Execution: one call, its scope, and one engine a plan format."""
