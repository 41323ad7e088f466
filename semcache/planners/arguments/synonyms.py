"""Synonyms: names for the same thing in general English, so that `page size` finds `perPage`.

The groups hold what programmers call the same input in any domain: paging, ranges, addresses,
abbreviations. What only one domain calls the same belongs to the user's own groups.
"""

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from semcache.process.memo import memoized
from semcache.prompts.parameter import name_key
from semcache.prompts.tokens import tokens
from semcache.prompts.words import singular

Words: TypeAlias = tuple[str, ...]

_PAGING = (
    "page size", "per page", "limit", "max results", "page limit", "items per page",
    "results per page", "number of results", "number of items", "max items", "top k", "max count",
)  # fmt: skip
_GROUPS = (
    "page; page number; page index",
    "query; q; search; search term; search query; search text; keyword; term",
    "id; identifier",
    "title; subject; headline",
    "body; content; message; text",
    "email; email address; e mail; mail address",
    "phone; phone number; telephone; telephone number; tel; mobile; mobile number",
    "start; from; begin; beginning; since",
    "end; to; until; till",
    "minimum; min; at least",
    "maximum; max; at most",
    "sort; sort by; order by; sort field",
    "direction; sort order; sort direction",
    "assignee; assigned to",
    "author; creator; created by",
    "destination; dest; dst; to",
    "origin; from; source; src",
    "user; username; user name; login",
    "label; tag",
    "url; link; uri; website",
    "timezone; time zone; tz",
    "zip; zip code; postal code; postcode",
    "repository; repo",
    "organization; organisation; org",
    "number; num",
    "quantity; qty",
    "description; desc",
    "address; addr",
    "amount; amt",
    "message; msg",
    "language; lang",
    "department; dept",
    "latitude; lat",
    "longitude; lon; lng",
    "percent; percentage; pct",
    "format; fmt",
    "directory; dir; folder",
    "date of birth; dob; birthday; birth date",
)
_FILLERS = frozenset(["a", "an", "the", "of", "for", "my", "this", "that", "which"])


def canonical(name: str) -> Words:
    """Return one spelling for names that mean the same: a group becomes one word of it."""
    return tuple(one[0] for one in _meanings(words(name)))


def same_meaning(left: str, right: str) -> bool:
    """Return whether two names mean the same, phrase by phrase."""
    one, other = _meanings(words(left)), _meanings(words(right))
    return len(one) == len(other) and all(
        not set(a).isdisjoint(b) for a, b in zip(one, other, strict=True)
    )


@memoized(20_000)
def _meanings(given: Words) -> tuple[tuple[str, ...], ...]:
    """Return what each phrase of the words may stand for, longest phrases first."""
    numbers = _group_numbers()
    longest = max(map(len, numbers))
    found: list[tuple[str, ...]] = []
    at = 0
    while at < len(given):
        sizes = range(min(longest, len(given) - at), 0, -1)
        size = next((n for n in sizes if given[at : at + n] in numbers), 0)
        groups = numbers.get(given[at : at + size], ())
        found.append(tuple(f"#{number}" for number in groups) or (given[at],))
        at += size or 1
    return tuple(found)


@cache
def _group_numbers() -> Mapping[Words, tuple[int, ...]]:
    """Return phrase → the groups that it stands in."""
    numbers: dict[Words, tuple[int, ...]] = {}
    for number, group in enumerate((_PAGING, *(group.split(";") for group in _GROUPS))):
        for phrase in dict.fromkeys(map(words, group)):
            numbers[phrase] = (*numbers.get(phrase, ()), number)
    return numbers


@memoized(20_000)
def words(name: str) -> Words:
    """Return the singular words of a name or phrase, without articles: `perPage` is per, page."""
    found = tuple(singular(word) for word in tokens(" ".join(name_key(name).split("_"))))
    return tuple(word for word in found if word not in _FILLERS) or found
