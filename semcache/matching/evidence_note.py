"""The note of evidence: what whoever writes one has without reading it.

A note rounds what it keeps, and its size is bounded. Whoever wrote one has what a reader of it
gets, to the last bit, without reading it: so what follows from evidence is the same whether a
process wrote the note itself, and in the background, or read what another one wrote.
"""

from dataclasses import fields

import numpy as np

from semcache.canonical import JsonObject, dumps
from semcache.matching.evidence import FORMAT, Evidence, Leanings, Tally, Weights

_TALLIES = tuple(field.name for field in fields(Evidence) if field.default_factory is Tally)


def noted(before: Evidence, news: Evidence) -> Evidence:
    """Return what is read from the note of `before`, itself read from one, and `news`."""
    total = copied(before)
    total.merge(news)
    sizes = _sizes(total)
    total.trim()
    if _sizes(total) != sizes:
        # Of words seen equally often those go first that stand first in the note, which is sorted.
        total = copied(before, in_order=True)
        total.merge(news)
        total.trim()
    for name in _TALLIES:
        mine: Tally = getattr(total, name)
        its: Tally = getattr(news, name)
        for counts, new in ((mine.same, its.same), (mine.other, its.other)):
            counts.update([(key, round(counts[key], 3)) for key in new if key in counts])
    sums = total.leanings.sums
    for key in news.leanings.sums:
        if key in sums:
            precision, pull = sums[key]
            sums[key] = float(f"{precision:.4g}"), float(f"{pull:.4g}")
    total.precision, total.pull = _rounded(total.precision), _rounded(total.pull)
    return total


def note_text(evidence: Evidence) -> str:
    """Return the note of what `noted` returned: that of `to_json`, which need not round again."""
    doc: JsonObject = {"format": FORMAT, "labels": evidence.labels, "same": evidence.same}
    for name in _TALLIES:
        tally: Tally = getattr(evidence, name)
        doc[name] = {"same": dict(tally.same), "other": dict(tally.other)}
    doc["samples"] = evidence.samples.to_json()
    doc["leanings"] = {key: [*both] for key, both in evidence.leanings.sums.items()}
    for name, weights in (("precision", evidence.precision), ("pull", evidence.pull)):
        doc[name] = None if weights is None else weights.tolist()
    return dumps(doc)


def copied(evidence: Evidence, *, in_order: bool = False) -> Evidence:
    """Return a copy that may be changed; `in_order`: with its keys sorted, as in a note."""

    def copy(counts: dict[str, float]) -> dict[str, float]:
        return dict(sorted(counts.items())) if in_order else counts.copy()

    tallies = {
        name: Tally(copy(tally.same), copy(tally.other))
        for name in _TALLIES
        if isinstance(tally := getattr(evidence, name), Tally)
    }
    sums = evidence.leanings.sums
    return Evidence(
        **tallies,
        samples=evidence.samples.copy(),
        labels=evidence.labels,
        same=evidence.same,
        precision=evidence.precision,
        pull=evidence.pull,
        leanings=Leanings(dict(sorted(sums.items())) if in_order else sums.copy()),
    )


def _sizes(evidence: Evidence) -> list[int]:
    sizes = [len(evidence.leanings.sums)]
    for name in _TALLIES:
        tally: Tally = getattr(evidence, name)
        sizes += (len(tally.same), len(tally.other))
    return sizes


def _rounded(weights: Weights | None) -> Weights | None:
    return None if weights is None else np.array([float(f"{weight:.6g}") for weight in weights])
