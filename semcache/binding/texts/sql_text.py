"""Values inside SQL: numbers and quoted texts that surely are values.

A statement is read only as far as all dialects agree on it. With comments, backslashes, quotes
that do not close, or patterns other than LIKE, nothing of it is read, and its values stay.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from semcache.binding.texts.part import Part, Writer
from semcache.canonical import Json
from semcache.errors import BindingError
from semcache.prompts.parameter import name_key

_STATEMENT = re.compile(
    r"\s*(?:(?:select|with|insert|update|delete|merge|replace)\s.*\b(?:from|into|set|select)\b"
    r"|select\s|where\s|having\s)",
    re.IGNORECASE | re.DOTALL,
)
_UNCLEAR = re.compile(
    r"--|/\*|\\|\$\$|#|~|\|\||\b(?:regexp\w*|rlike|glob|match|similar|escape)\b", re.IGNORECASE
)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<text>'(?:[^']|'')*')"
    r'|(?P<quoted>"[^"]*"|`[^`]*`|\[[A-Za-z_][\w ]*\])'
    r"|(?P<number>\d+(?:\.\d+)?(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<sign><=|>=|<>|!=|\|\||::|.)",
    re.DOTALL,
)
_COMPARES = frozenset({"=", "<", ">", "<=", ">=", "<>", "!="})
_BEFORE_VALUE = frozenset(
    {*_COMPARES, "(", ",", "and", "between", "else", "ilike", "in", "like", "limit", "not",
     "offset", "or", "select", "then", "top", "when"}
)  # fmt: skip
_TAKES_COUNT = frozenset({"limit", "offset", "top"})
_BETWEEN_VALUES = frozenset({"(", ",", "-", "and", "date", "not", "timestamp"})
_FAR = 200  # tokens of the longest list of values that is followed back to its column
_LIKE = frozenset({"like", "ilike"})


def _write(value: Json) -> str:
    """Return the value as it stands inside `'…'`, or a number as it is."""
    spelled = _plain(value)
    if "\\" in spelled or any(ord(c) < 32 and c not in "\t\n" for c in spelled):
        raise _unsafe(spelled, "a backslash or control character ends a text in some dialects")
    return spelled.replace("'", "''")


def _write_like(value: Json) -> str:
    """Return the value as it stands inside a pattern, where some characters stand for others."""
    spelled = _write(value)
    if any(c in spelled for c in "%_["):
        raise _unsafe(spelled, "in a pattern such characters stand for any other")
    return spelled


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else repr(value)


def _unsafe(spelled: str, why: str) -> BindingError:
    return BindingError(
        f"{spelled[:80]!r} cannot go into this SQL: {why}; hand it on as an input of its own",
        reason="unsafe",
    )


WRITERS: Mapping[str, Writer] = MappingProxyType({"sql": _write, "sql-like": _write_like})
"""Codecs that spell a value in SQL."""


def read_sql(text: str) -> list[Part] | None:
    """Return the values of a statement or a condition; None for a text that is neither."""
    if not _STATEMENT.match(text):
        return None
    if _UNCLEAR.search(text):
        return []
    tokens = [t for t in _TOKEN.finditer(text) if t.lastgroup != "space"]
    # A quote that stands alone is one that nothing closes: where texts end, nobody knows.
    if any(t.lastgroup == "sign" and t[0] in "'\"`" for t in tokens):
        return []
    found: list[Part] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        if token.lastgroup == "text":
            found += _text(tokens, at, before)
        elif token.lastgroup == "number":
            found += _number(tokens, at)
    return found


def _text(tokens: list[re.Match[str]], at: int, before: re.Match[str] | None) -> list[Part]:
    token = tokens[at]
    if before is not None and before.end() == token.start() and before.lastgroup == "word":
        return []  # `E'…'`, `x'…'`: what is inside is read in another way
    start, end = token.start() + 1, token.end() - 1
    like = before is not None and before[0].lower() in _LIKE
    inner = token[0][1:-1]
    if like:
        start += len(inner) - len(inner.lstrip("%"))
        end -= len(inner) - len(inner.rstrip("%"))
        inner = inner.strip("%")
    writer = "sql-like" if like else "sql"
    value = inner.replace("''", "'")
    fixed = start >= end or (like and any(c in inner for c in "%_["))
    return [Part(start, end, value, names=_names(tokens, at), writers=(writer,), fixed=fixed)]


def _number(tokens: list[re.Match[str]], at: int) -> list[Part]:
    token, start, first = tokens[at], tokens[at].start(), at
    if at and tokens[at - 1][0] == "-" and at > 1 and _opens(tokens[at - 2]):
        first, start = at - 1, tokens[at - 1].start()
    if not (first and _opens(tokens[first - 1])):
        return []  # `x - 5`: with -5 in its place the rest would be a comment
    raw = "".join(t[0] for t in tokens[first : at + 1])
    value: Json = float(raw) if "." in raw else int(raw)
    return [Part(start, token.end(), value, names=_names(tokens, first), writers=("sql",))]


def _opens(token: re.Match[str]) -> bool:
    return token[0].lower() in _BEFORE_VALUE


def _names(tokens: list[re.Match[str]], at: int) -> tuple[str, ...]:
    """Return the column that a value is compared with, or the clause that takes a count."""
    if at and tokens[at - 1][0].lower() in _TAKES_COUNT:
        return (tokens[at - 1][0].lower(),)
    for left in range(at - 1, max(at - _FAR, 0), -1):
        sign = tokens[left][0].lower()
        if sign in _COMPARES or sign in {"between", "in", "like", "ilike"}:
            negated = tokens[left - 1][0].lower() == "not"
            return _column(tokens[left - 1 - negated])
        if tokens[left].lastgroup not in {"text", "number"} and sign not in _BETWEEN_VALUES:
            return ()
    return ()


def _column(token: re.Match[str]) -> tuple[str, ...]:
    if token.lastgroup not in {"word", "quoted"}:
        return ()
    return (name_key(token[0].strip('"`[]')),)
