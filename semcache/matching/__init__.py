"""Matching: whether a candidate's plan may be served to a prompt, and why not."""
