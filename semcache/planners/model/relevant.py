"""Which operations of a large catalog a text is about: words and meaning, two rankings in one."""

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import EmbeddingError, InvalidSettings
from semcache.planners.arguments.operation_index import (
    content,
    index_of,
    wording,
)
from semcache.ports import Embedder, Vector
from semcache.process.memo import Lru
from semcache.prompts.parameter import name_key
from semcache.prompts.tokens import phrase_of

log = logging.getLogger(__name__)

KEPT_VECTORS = 10_000
"""Operations whose vectors are remembered."""
EMBEDDED = 400
"""Operations that are embedded at most, those with the likeliest words; embedding 5,000 of them
would take half a minute."""
FUSION = 60
"""The constant of reciprocal rank fusion, as its authors give it."""


class Relevant:
    """Finds the operations that a text is likely about. Safe from several threads.

    Two rankings, by BM25 over words and by cosine of embeddings, become one by reciprocal rank
    fusion (Cormack, Clarke and Büttcher 2009). Where there are domains, operations of others than
    the text speaks of are left out. Only operations with the likeliest words are
    embedded, each once; an embedder that fails leaves the ranking by words.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        most: int = 40,
        domains: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            embedder: Compares meanings; None: words decide alone.
            most: Operations at most, at least 1; a catalog that has no more is taken whole.
            domains: Domain → its keywords.

        Raises:
            InvalidSettings: `most` is under 1.
        """
        if most < 1:
            raise InvalidSettings(f"most is {most!r}; expected 1 or more operations")
        self.most = most
        """Operations at most."""
        self._embedder = embedder
        self._domains = domains or {}
        self._vectors: Lru[str, Vector] = Lru(KEPT_VECTORS)

    def find(self, text: str, catalog: Catalog, *, widened: int = 1) -> tuple[Operation, ...]:
        """Return the operations of `catalog` that `text` is likely about, in the catalog's order.

        `widened`: how many times `most` they may be, and above 1 of any domain. What has no more
        comes back whole.
        """
        wanted = domains_of(text, self._domains) if widened == 1 else ()
        operations = in_domains(catalog, wanted, self._domains)
        most = self.most * widened
        if len(operations) <= most:
            return operations
        names = {operation.name for operation in operations}
        ranked = [one.name for one in self.ranked(text, catalog) if one.name in names]
        chosen = {*ranked[:most]}
        return tuple(one for one in operations if one.name in chosen)

    def ranked(self, text: str, catalog: Catalog) -> list[Operation]:
        """Return all operations of `catalog`, the likeliest for `text` first, ties by name."""
        operations = tuple(catalog)
        by_words = index_of(catalog).scores(content(text))
        first = sorted(range(len(operations)), key=lambda at: (-by_words.get(at, 0.0), at))
        near = self._by_meaning(text, [operations[at] for at in first[: max(EMBEDDED, self.most)]])
        score = {at: 1 / (FUSION + rank) for rank, at in enumerate(first) if at in by_words}
        for rank, place in enumerate(near):
            at = first[place]
            score[at] = score.get(at, 0.0) + 1 / (FUSION + rank)
        order = sorted(range(len(operations)), key=lambda at: (-score.get(at, 0.0), at))
        return [operations[at] for at in order]

    def _by_meaning(self, text: str, operations: Sequence[Operation]) -> list[int]:
        """Return places of `operations`, the nearest to `text` first.

        `[]` without an embedder, or where it fails (which is logged).
        """
        if self._embedder is None or not operations:
            return []
        try:
            asked = self._embedder.embed([text])[0]
            near = self._embedded(self._embedder, operations) @ asked
        except EmbeddingError as error:
            log.warning("operations are ranked by their words alone: %s", error)
            return []
        return sorted(range(len(near)), key=lambda at: (-near[at], at))

    def _embedded(self, embedder: Embedder, operations: Sequence[Operation]) -> np.ndarray:
        """Return the vectors of operations, a row each; each is embedded once."""
        by_print = {operation.fingerprint: operation for operation in operations}
        kept = ((print_, self._vectors.use(print_)) for print_ in by_print)
        known = {print_: vector for print_, vector in kept if vector is not None}
        missing = [print_ for print_ in by_print if print_ not in known]
        rows = embedder.embed([wording(by_print[one]) for one in missing]) if missing else ()
        for print_, vector in zip(missing, rows, strict=True):
            known[print_] = vector
            self._vectors.put(print_, vector)
        return np.stack([known[operation.fingerprint] for operation in operations])


# ── domains ──────────────────────────────────────────────────────────────────────────────────────


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
    # `mcp.github.listIssues` is "mcp github list issues".
    name = name_key(operation.name).replace("_", " ")
    own = domains_of(f"{name} {operation.summary}", domains)
    return not own or bool(set(own) & set(wanted))


def _stands_in(phrase: tuple[str, ...], words: tuple[str, ...]) -> bool:
    size = len(phrase)
    starts = range(len(words) - size + 1) if size else ()
    return any(all(map(_alike, words[i : i + size], phrase)) for i in starts)


def _alike(word: str, keyword: str) -> bool:
    return word in {keyword, f"{keyword}s"}  # "prs" is too short for a plural by the rules
