"""The command line: `semcache`, and `python -m semcache`."""

import sys


def run() -> int:
    """Run one command and return its exit status; Ctrl-C is one line from the first moment on."""
    try:
        # Inside, for it takes a second to load, and whoever regrets a command hits Ctrl-C in that.
        from semcache.commands.cli import main  # noqa: PLC0415

        return main()
    except KeyboardInterrupt:
        print("semcache: interrupted", file=sys.stderr)  # noqa: T201 - as `commands.output` does
        return 130


if __name__ == "__main__":
    sys.exit(run())
