"""Generalize: from a plan and the values it was made for to its bindings and pins."""
