"""Texts that hold values in a language of their own: JSON, SQL, addresses, timestamps."""
