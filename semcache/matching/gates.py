"""Gates: checks that a semantic candidate must pass; each answers with a reason.

A gate is a callable from a pair to a verdict. Gates compose with `+`: all must pass, asked in
order, cheap ones first.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from semcache.matching.content import difference
from semcache.matching.pair import Pair, Verdict

Gate: TypeAlias = Callable[[Pair], Verdict]
"""Asks one thing of a pair. Pure."""


@dataclass(frozen=True, slots=True)
class Gates:
    """Gates asked in order until one refuses."""

    gates: tuple[Gate, ...]

    def __add__(self, other: Gate) -> "Gates":
        return Gates((*self.gates, other))

    def __call__(self, pair: Pair) -> tuple[Verdict, ...]:
        """Return the verdicts up to and with the first refusal."""
        verdicts: list[Verdict] = []
        for gate in self.gates:
            verdicts.append(gate(pair))
            if not verdicts[-1].passed:
                break
        return tuple(verdicts)


def threshold(above: float) -> Gate:
    """Return a gate that wants a cosine strictly over `above`, in [-1, 1]."""
    passed = Verdict("threshold", passed=True)

    def gate(pair: Pair) -> Verdict:
        if pair.score > above:
            return passed
        return Verdict("threshold", passed=False, reason=f"{pair.score:.4f} <= {above:g}")

    return gate


# Made once: most verdicts are these, and every hit collects a handful.
_SAME_CATALOG = Verdict("catalog", passed=True)
_SAME_GROUNDING = Verdict("grounding", passed=True)
_SAME_PARAMETERS = Verdict("parameters", passed=True)
_SAME_SLOTS = Verdict("slots", passed=True)
_SAME_WORDS = Verdict("words", passed=True)


def catalog(pair: Pair) -> Verdict:
    """Pass if both sides see the same catalog (orra: services hash)."""
    if pair.query.catalog == pair.candidate.catalog:
        return _SAME_CATALOG
    return Verdict("catalog", passed=False, reason="the operations changed since it was stored")


def grounding(pair: Pair) -> Verdict:
    """Pass if both sides have the same grounding."""
    mine, its = pair.query.grounding, pair.candidate.grounding
    if mine == its:
        return _SAME_GROUNDING
    return Verdict("grounding", passed=False, reason=f"{mine!r} is not {its!r}")


def parameters(pair: Pair) -> Verdict:
    """Pass if the caller gives no parameters, or exactly those that the candidate depends on."""
    given, wanted = pair.query.names, pair.candidate.names
    if not given or given == wanted:
        return _SAME_PARAMETERS
    return Verdict("parameters", passed=False, reason=_sets(given - wanted, wanted - given))


def _sets(extra: frozenset[str], missing: frozenset[str]) -> str:
    parts = [f"given but not used: {', '.join(sorted(extra))}"] if extra else []
    parts += [f"used but not given: {', '.join(sorted(missing))}"] if missing else []
    return "; ".join(parts)


def slots(pair: Pair) -> Verdict:
    """Pass if both templates have the same slot types, each as often."""
    mine, its = pair.query.template.signature, pair.candidate.template.signature
    if mine == its:
        return _SAME_SLOTS
    return Verdict("slots", passed=False, reason=f"{_list(mine)} against {_list(its)}")


def _list(kinds: Iterable[str]) -> str:
    return " ".join(f"<{kind}>" for kind in kinds) or "none"


def words(pair: Pair) -> Verdict:
    """Pass if the words that differ are known not to matter, and the rest stand in one order."""
    reason = difference(pair.query.template, pair.candidate.template)
    return Verdict("words", passed=False, reason=reason) if reason else _SAME_WORDS


def default_gates(above: float) -> Gates:
    """Return the gates of a semantic hit, cheap ones first."""
    return Gates((catalog, grounding, parameters, slots, threshold(above), words))


def risk_gates() -> Gates:
    """Return the gates that a candidate must pass whatever its risk is."""
    return Gates((catalog, grounding, parameters, slots))


def exact_gates() -> Gates:
    """Return the gates of a hit whose template text or schema is equal."""
    return Gates((catalog, grounding, parameters))
