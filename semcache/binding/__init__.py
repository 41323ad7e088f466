"""Binding: a plan becomes a plan template, and a plan template becomes a plan. Pure: no I/O."""
