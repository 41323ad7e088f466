"""Plans: their formats, how they are read, and what can be wrong with them. Pure: no I/O."""
