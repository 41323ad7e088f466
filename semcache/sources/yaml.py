"""YAML as OpenAPI wants it: the JSON schema of YAML 1.2, so that `no` and dates are text."""

import re

import yaml

from semcache.canonical import MAX_DEPTH
from semcache.errors import InvalidOperation

try:
    from yaml import CSafeLoader as _Safe
except ImportError:  # PyYAML built without libyaml: ten times slower, otherwise the same
    from yaml import SafeLoader as _Safe  # type: ignore[assignment]  # the two share their methods


class Loader(_Safe):
    """Makes null, booleans, numbers, text, lists and objects, and nothing else."""


# Of its own: the base class shares its table with every other loader.
Loader.yaml_implicit_resolvers = {}

_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
}
for _tag, (_pattern, _first) in _SCALARS.items():
    Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
    )
Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("^<<$"), ["<"])

MAX_EVENTS = 4_000_000  # scalars, and beginnings and ends of lists and objects


def parsed(text: str, what: str) -> object:
    """Return what YAML spells; parts that it names twice are shared.

    Raises:
        InvalidOperation: it is not YAML, too deep, or too large; `what` names it.
    """
    try:
        deep = _is_too_deep(text)
        value: object = None if deep else yaml.load(text, Loader)  # noqa: S506 - a SafeLoader with fewer types
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise InvalidOperation(f"{what} is neither JSON nor YAML: {why}") from error
    if deep:
        raise InvalidOperation(
            f"{what} is nested deeper than {MAX_DEPTH} levels, or has over {MAX_EVENTS:,} parts"
        )
    return value


def _is_too_deep(text: str) -> bool:
    """Return whether building it is out of the question: libyaml recurses until C's stack ends.

    Events are read one by one, so this takes as long as reading, and no memory.
    """
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or count > MAX_EVENTS:
            return True
    return False
