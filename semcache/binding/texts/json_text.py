r"""JSON inside a text, as the arguments of a tool call are.

Values are spelled as the rest of the text is: `é` or `\u00e9`, `/` or `\/`, with or without
spaces between. Everything beside them stays as it is, character by character.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType

from semcache.binding.texts.part import Part, Writer
from semcache.canonical import Json, Pointer, loads
from semcache.errors import InvalidJson
from semcache.prompts.parameter import name_key

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


def _write(value: Json, *, ascii_only: bool, slashes: bool, compact: bool) -> str:
    """Return the characters of a text without its quotes; any other value as a whole."""
    separators = (",", ":") if compact else (", ", ": ")
    spelled = json.dumps(value, ensure_ascii=ascii_only, separators=separators, allow_nan=False)
    spelled = spelled.replace("/", "\\/") if slashes else spelled
    return spelled[1:-1] if isinstance(value, str) else spelled


def _name(*, ascii_only: bool, slashes: bool, compact: bool) -> str:
    flags = ("-ascii" * ascii_only, "-slashes" * slashes, "-compact" * compact)
    return "json" + "".join(flags)


_STYLES: Mapping[str, Writer] = MappingProxyType(
    {
        _name(ascii_only=a, slashes=s, compact=c): partial(
            _write, ascii_only=a, slashes=s, compact=c
        )
        for a, s, c in product((False, True), repeat=3)
    }
)
WRITERS = _STYLES
"""Codecs that spell a value in a JSON text, one for each style of writing JSON."""


def read_json(text: str) -> list[Part] | None:
    """Return the values of a JSON object or array with their places; None for any other text."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        loads(text)
    except InvalidJson:
        return None
    found = _parts(text)
    if len({part.inside for part in found}) < len(found):
        return []  # a key that stands twice: readers do not agree on which one counts
    style = _style(text, found)
    return [_styled(text, part, style) for part in found[1:]]


def respelled(text: str, value: Json) -> str:
    """Return `value` in the style of a text that is JSON; what was wrapped over lines is not."""
    return _STYLES[_style(text, _parts(text))](value)


def _parts(text: str) -> list[Part]:
    return list(_Reader(text).values(len(text) - len(text.lstrip(_SPACE)), (), ""))


def _style(text: str, parts: list[Part]) -> str:
    """Return the style that spells most of the text as it is."""
    spelled = [(p.value, text[p.start : p.end]) for p in parts]
    return max(_STYLES, key=lambda name: sum(_STYLES[name](v) == raw for v, raw in spelled))


def _styled(text: str, part: Part, style: str) -> Part:
    spells = _STYLES[style](part.value) == text[part.start : part.end]
    # How a number was spelled says nothing of another: 17.50 may become 18.
    number = isinstance(part.value, int | float)
    return Part(
        part.start,
        part.end,
        part.value,
        inside=part.inside,
        names=part.names,
        writers=(style,),
        fixed=not (spells or number),
    )


class _Reader:
    """Walks through a text that is JSON for sure."""

    def __init__(self, text: str) -> None:
        self._text = text

    def values(self, at: int, inside: Pointer, name: str) -> Iterator[Part]:
        """Yield the value that begins at `at`, and all below it."""
        value, end = _DECODER.raw_decode(self._text, at)
        quote = int(isinstance(value, str))
        names = (name,) if name else ()
        yield Part(at + quote, end - quote, value, inside=inside, names=names)
        if isinstance(value, dict | list):
            yield from self._below(at + 1, inside, name, is_object=isinstance(value, dict))

    def _below(self, at: int, inside: Pointer, name: str, *, is_object: bool) -> Iterator[Part]:
        count, at = 0, self._skipped(at)
        while self._text[at] not in "}]":
            step: str | int = count
            if is_object:
                step, at = _DECODER.raw_decode(self._text, at)
                at = self._skipped(self._skipped(at) + 1)
                name = name_key(str(step))
            yield from self.values(at, (*inside, step), name)
            at = self._skipped(_DECODER.raw_decode(self._text, at)[1])
            at = self._skipped(at + (self._text[at] == ","))
            count += 1

    def _skipped(self, at: int) -> int:
        return len(self._text) - len(self._text[at:].lstrip(_SPACE))
