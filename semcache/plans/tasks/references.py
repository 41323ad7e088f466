"""References of the tasks format: `$task1.order.items[0].id`, and what they lead to."""

import re
from dataclasses import dataclass

from semcache.canonical import Json
from semcache.memo import memoized
from semcache.plans.references.paths import is_expression

CONSTANTS = "task0"
"""The task that calls nothing: its input is its result. Its id is read in any case."""


@dataclass(frozen=True, slots=True)
class TaskPath:
    """What a reference names: a task, and the way into its result."""

    task: str
    steps: tuple[str, ...]
    """Keys, and list positions in digits; empty for the whole result."""


_PATH = re.compile(r"""\$([^\W\d][\w-]*)((?:\.[\w-]+|\[[0-9]+\]|\['[^']+'\]|\["[^"]+"\])*)""")
_STEP = re.compile(r"""\.([\w-]+)|\[([0-9]+)\]|\['([^']+)'\]|\["([^"]+)"\]""")
_POSITION = re.compile("[0-9]{1,9}")


@memoized(4096)
def parse(text: str) -> TaskPath | None:
    """Return what a reference names; None if `text` is not one from end to end."""
    found = _PATH.fullmatch(text)
    if found is None:
        return None
    return TaskPath(named(found[1]), tuple(map("".join, _STEP.findall(found[2]))))


def named(name: str) -> str:
    """Return the id of a task as it is compared: that of the constants in lower case."""
    return CONSTANTS if name.casefold() == CONSTANTS else name


def is_reference(text: str) -> bool:
    """Return whether a text is to be read as a reference: `$…`, but not `$$`, `$5` or `${{…}}`."""
    return is_expression(text) and not text.startswith("${{")


def walk(value: Json, steps: tuple[str, ...]) -> Json:
    """Return the part of `value` that the steps lead to.

    A key that has dots itself goes before the way through objects.

    Raises:
        LookupError: there is no such part; the message says what is there instead.
    """
    dotted = ".".join(steps)
    if isinstance(value, dict) and steps and dotted in value:
        return value[dotted]
    for step in steps:
        value = _inside(value, step)
    return value


def _inside(value: Json, step: str) -> Json:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list) and _POSITION.fullmatch(step) and int(step) < len(value):
        return value[int(step)]
    raise LookupError(f"there is no {step!r} in {_held(value)}")


def _held(value: Json) -> str:
    match value:
        case dict():
            shown = ", ".join(map(repr, list(value)[:10]))
            return f"an object with {shown}" if value else "an empty object"
        case list():
            return f"a list of {len(value)}"
        case None:
            return "null"
        case _:
            return f"a {type(value).__name__}"
