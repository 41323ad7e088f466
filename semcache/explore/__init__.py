"""Explore: how good the matches are, as figures, data frames and pictures."""
