"""Values inside an address: the segments of its path and the values of its query."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from urllib.parse import quote, unquote

from semcache.binding.texts.part import Part, Writer
from semcache.canonical import Json
from semcache.errors import BindingError
from semcache.prompts.parameter import name_key

_ADDRESS = re.compile(
    r"(?:(?:GET|HEAD|POST|PUT|PATCH|DELETE)\s+)?"
    r"(?P<base>[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*)?"
    r"(?P<path>(?:/[^\s?#<>{}\"'\\^`|$;]*)?)"
    r"(?P<query>(?:\?[^\s#<>{}\"'\\^`|$;]*)?)"
    r"(?P<end>(?:#\S*)?)"
)
_SEGMENT = re.compile(r"[^/]+")
_SLASH = re.compile(r"[/\\]")
_NAME = re.compile(r"[A-Za-z][A-Za-z_-]*")
# A key is looked for where one may begin alone, or a long query would be read from each character.
_PAIR = re.compile(r"(?<![^&=])(?P<key>[^&=]+)=(?P<value>[^&=]+)")
_STYLES = {"url": ":,@", "url-all": "", "url-plus": ":,@"}
"""Writer → characters beside letters and digits that it leaves as they are."""


def _write(value: Json, *, name: str) -> str:
    spelled = value if isinstance(value, str) else repr(value)
    # Some servers take `..%2F` for `../`, so that it would name another place.
    if {"", ".", ".."} & set(_SLASH.split(spelled)):
        raise BindingError(
            f"{spelled[:80]!r} cannot go into an address: it would name another place",
            reason="unsafe",
        )
    return _spell(spelled, name)


def _spell(text: str, name: str) -> str:
    spelled = quote(text, safe=_STYLES[name])
    return spelled.replace("%20", "+") if name == "url-plus" else spelled


WRITERS: Mapping[str, Writer] = MappingProxyType({n: partial(_write, name=n) for n in _STYLES})
"""Codecs that spell a value in an address."""


def read_url(text: str) -> list[Part] | None:
    """Return the segments and query values of an address; None for a text that is none."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not (match["path"] or (match["base"] and match["query"])):
        return None
    return [*_segments(match), *_pairs(match)]


def _segments(match: re.Match[str]) -> Iterator[Part]:
    before = ""
    for segment in _SEGMENT.finditer(match["path"]):
        start = match.start("path") + segment.start()
        # `/orders/17`: an order, by its id.
        one = name_key(before).removesuffix("s")
        names = (f"{one}_id", one, name_key(before)) if _NAME.fullmatch(before) else ()
        yield _part(start, segment[0], names, ("url", "url-all"))
        before = segment[0]


def _pairs(match: re.Match[str]) -> Iterator[Part]:
    for pair in _PAIR.finditer(match["query"][1:]):
        start = match.start("query") + 1 + pair.start("value")
        names = (name_key(unquote(pair["key"])),)
        yield _part(start, pair["value"], names, ("url", "url-all", "url-plus"))


def _part(start: int, raw: str, names: tuple[str, ...], writers: tuple[str, ...]) -> Part:
    for writer in writers:
        value = unquote(raw.replace("+", " ") if writer == "url-plus" else raw)
        if _spell(value, writer) == raw:
            return Part(start, start + len(raw), value, names=names, writers=(writer,))
    return Part(start, start + len(raw), unquote(raw), names=names, fixed=True)
