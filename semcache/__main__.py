"""`python -m semcache`: the command line."""

import sys

from semcache.cli import main

if __name__ == "__main__":
    sys.exit(main())
