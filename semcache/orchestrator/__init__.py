"""Answering: the parts of a run, from the prompt to the answer."""
