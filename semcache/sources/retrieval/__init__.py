"""Operations that find texts, and things that texts tell of, in an index of the caller."""
