"""Recognizers: what finds values in a prompt, and what the words of a value may be read as."""
