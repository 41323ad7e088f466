"""What commands print, and the statuses they exit with."""

import sys

from semcache.canonical import Json, JsonObject, dumps

WRONG, ERROR, WAITING, INTERRUPTED = 1, 2, 3, 130
"""Exit statuses beside 0: a command found something wrong (`demo` a wrong answer, `tune` nothing to
recommend, `plan check` a finding), a command failed, the plan asks what nobody was there to answer,
somebody hit Ctrl-C."""


def print_json(value: Json) -> None:
    """Print `value` as one line of JSON."""
    print(dumps(value))


def print_pairs(pairs: JsonObject, *, as_json: bool) -> None:
    """Print one pair a line, or all as JSON."""
    if as_json:
        print_json(pairs)
        return
    for name, value in pairs.items():
        print(f"{name}: {value if isinstance(value, str) else dumps(value)}")


def say_error(message: str) -> None:
    """Print an error in one line where errors go."""
    print("semcache:", " ".join(message.split()), file=sys.stderr)
