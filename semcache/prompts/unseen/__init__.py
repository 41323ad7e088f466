"""Unseen values: words that nobody used before, read as values by what stands around them."""
