"""Domains: which part of a catalog a goal is about, by the keywords that the settings give."""

import re
from collections.abc import Iterable, Mapping, Sequence

from semcache.catalog.operation import Operation
from semcache.prompts.parameter import name_key
from semcache.prompts.tokens import phrase_of


def domains_of(text: str, domains: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the domains that `text` speaks of, in the order of the settings; empty if none.

    A keyword counts as whole words, in the singular or the plural: "pr" is not in "price"
    (specs/ccos.md, E1, has it as a substring).
    """
    words = phrase_of(text)
    return tuple(
        name
        for name, keywords in domains.items()
        if any(_stands_in(phrase_of(keyword), words) for keyword in (name, *keywords))
    )


def in_domains(
    operations: Iterable[Operation], wanted: Sequence[str], domains: Mapping[str, Sequence[str]]
) -> tuple[Operation, ...]:
    """Return the operations of the `wanted` domains, and those that belong to none.

    All of them if nothing is wanted, or none is left (specs/ccos.md, E2).
    """
    known = tuple(operations)
    if not wanted:
        return known
    left = [one for one in known if _belongs(one, wanted, domains)]
    return tuple(left) or known


def _belongs(
    operation: Operation, wanted: Sequence[str], domains: Mapping[str, Sequence[str]]
) -> bool:
    own = domains_of(f"{_spaced(operation.name)} {operation.summary}", domains)
    return not own or bool(set(own) & set(wanted))


def _spaced(name: str) -> str:
    """Return the words of a name: `mcp.github.listIssues` is "mcp github list issues"."""
    return re.sub(r"_", " ", name_key(name))


def _stands_in(phrase: tuple[str, ...], words: tuple[str, ...]) -> bool:
    size = len(phrase)
    starts = range(len(words) - size + 1) if size else ()
    return any(all(map(_alike, words[i : i + size], phrase)) for i in starts)


def _alike(word: str, keyword: str) -> bool:
    return word in {keyword, f"{keyword}s"}  # "prs" is too short for a plural by the rules
