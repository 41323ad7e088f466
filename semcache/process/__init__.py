"""One process: its threads, forks, interrupts and late imports, and memories of bounded size."""
