"""How a program reads its variables: `{{name}}` and `${name.field}` in texts, `{"var": "name"}`.

Both dialects are read in every program. A reference in a text gives text, except that a text which
is one `${name}` and nothing else gives the value with its type, as `{"var": "name"}` does.
`{{params.x}}` is a placeholder of binding and no reference. There is no escape: a text that must
hold a literal `{{x}}`, where the program has an `x`, is handed over as a parameter.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject, Pointer

REFERENCE = re.compile(
    r"\{\{\s*(?!params\s*\.)(?P<braced>[^\W\d]\w*(?:\.\w+)*)\s*\}\}"
    r"|\$\{\s*(?P<dollar>[^\W\d]\w*(?:\.\w+)*)\s*\}"
)
"""A reference inside a text."""

Span = tuple[int, int]
"""Characters of a text, from and to (exclusive)."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A reference to a variable."""

    name: str
    path: tuple[str, ...]
    """Fields below it, from the outside in."""
    written: str
    """As it stands in the plan."""
    typed: bool
    """Whether it gives the value itself where it stands alone; else the value as text."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where values were bound in a program: what stands there is never read as a reference."""

    whole: frozenset[Pointer]
    """Places that are data, with all below them."""
    spans: Mapping[Pointer, tuple[Span, ...]]
    """Texts that hold data, and where in them."""

    @classmethod
    def of(cls, body: JsonObject, data: frozenset[Pointer]) -> "Bound":
        """Return what `data` says of `body`.

        A pointer that goes on below a text with two numbers means those characters of it.
        """
        spans: dict[Pointer, list[Span]] = {}
        whole = set(data)
        for at in data:
            span = _span(body, at)
            if span is not None:
                whole.remove(at)
                spans.setdefault(at[:-2], []).append(span)
        return cls(frozenset(whole), {at: tuple(sorted(found)) for at, found in spans.items()})


def _span(body: JsonObject, at: Pointer) -> Span | None:
    match at[-2:]:
        case (int(start), int(end)) if isinstance(found(body, at[:-2]), str):
            return start, end
        case _:
            return None


def found(value: Json, at: Pointer) -> Json:
    """Return what stands at `at` in `value`; None if nothing does."""
    for step in at:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def pieces(text: str, spans: tuple[Span, ...] = ()) -> tuple[str | Variable, ...]:
    """Return `text` as plain text and references by turns; none begins, ends or lies in a span."""
    if "{" not in text:
        return (text,) if text else ()
    parts: list[str | Variable] = []
    place = 0
    for start, end in spans:
        # Each stretch is read by itself, so that a value cannot complete what stands around it.
        _read(text[place:start], parts)
        if end > start:
            parts.append(text[start:end])
        place = end
    _read(text[place:], parts)
    return tuple(parts)


def _read(text: str, parts: list[str | Variable]) -> None:
    place = 0
    for match in REFERENCE.finditer(text):
        if match.start() > place:
            parts.append(text[place : match.start()])
        name, *path = (match["braced"] or match["dollar"]).split(".")
        parts.append(Variable(name, tuple(path), match[0], typed=match["dollar"] is not None))
        place = match.end()
    if place < len(text):
        parts.append(text[place:])


def variable(value: Json) -> Variable | None:
    """Return the reference that an object `{"var": "name"}` is; None for any other value."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    written = value.get("var")
    if not isinstance(written, str):
        return None
    name, *path = written.split(".")
    return Variable(name, tuple(path), written, typed=True)


def variables(value: Json, at: Pointer, bound: Bound) -> Iterator[tuple[Pointer, Variable]]:
    """Yield the references in `value`, which stands at `at`, each with its place."""
    if at in bound.whole:
        return
    if isinstance(value, str):
        for piece in pieces(value, bound.spans.get(at, ())):
            if isinstance(piece, Variable):
                yield at, piece
    elif (reference := variable(value)) is not None:
        yield at, reference
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from variables(item, (*at, key), bound)
