"""Feedback: what callers say of hits and entries, and what must hold from then on."""
