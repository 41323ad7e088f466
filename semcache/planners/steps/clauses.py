"""Clauses: a prompt with its values masked, so that patterns see its structure and nothing else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from semcache.catalog.catalog import Catalog
from semcache.planners.arguments.step_words import MASK, trimmed_span
from semcache.planners.steps.intents import ACTIONS, SubIntent, Transform
from semcache.ports import PlanRequest
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import Parameter
from semcache.prompts.recognizers.closed_values import ClosedValues
from semcache.prompts.words import (
    NEGATION,
)

_WORD = re.compile(rf"[^\W_][\w'-]*|{MASK}+")
_FIRST = re.compile(r"\s*([^\W\d_][\w-]*)")

# What a single clause must not have: more than one thing is asked, or under a condition.
_JOINTS = frozenset(
    "and or but nor then if unless otherwise while whenever when until once because although "
    "though whereas instead each every after before".split()
)
_QUALIFIED = re.compile(
    r"\b(?:sort|filter|group)(?:ed|ing)?\s+(?:\w+\s+)?by\b|\border(?:ed|ing)?\s+by\b"
    r"|\b(?:ask|prompt)(?:ed|s)?\b|\b(?:i|user)\s+(?:provide|choose|select|enter|give|pick)\w*\b",
    re.IGNORECASE,
)

_TRANSFORMS: dict[Transform, str] = {
    "filter": "filter keep",
    "sort": "sort order",
    "group": "group",
    "count": "count",
    "aggregate": "aggregate sum average",
    "limit": "limit take",
}
TRANSFORMS: Mapping[str, Transform] = {
    verb: kind for kind, verbs in _TRANSFORMS.items() for verb in verbs.split()
}
"""Verb → the transform that it names."""

_THEM = (
    r"(?:(?:only|just|all|of|them|it|those|these|that|this|ones|the|results?|lists?|output)\b\s*)*"
)
_TRANSFORM = re.compile(
    rf"(?P<verb>{'|'.join(TRANSFORMS)})\b\s*{_THEM}(?P<by>(?:by|for|on|to)\s+)?(?P<target>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(r"(?:(?:first|last|top|bottom)\s+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a prompt, by its offsets in it."""

    start: int
    end: int


class Unclear(Exception):
    """Why a text is more than a pattern understands; empty for what is just another pattern's.

    Never leaves the planners.
    """


@dataclass(frozen=True, slots=True)
class PromptClauses:
    """A prompt as patterns read it."""

    text: str
    masked: str
    """The same, with `MASK` for each character of a value; offsets are the same."""
    said: tuple[tuple[int, int, Parameter], ...]
    """The values that stand in the text: start, end, parameter."""
    unsaid: tuple[Parameter, ...]
    """The values that the caller gives beside the text."""

    @classmethod
    def of(cls, request: PlanRequest) -> "PromptClauses":
        """Return the prompt of a request with its values found."""
        text = request.prompt
        given = tuple(one for one in request.params if one.mention is not None)
        mentions = find_mentions(text, given=request.params, closed=_closed(request.catalog))
        known = {one.name: one for one in request.params}
        masked, said, names = list(text), [], dict[str, int]()
        for one in mentions:
            # A listed value of one word is as often a noun, or the verb, of what is asked.
            if one.source == "closed" and " " not in one.text:
                continue
            masked[one.start : one.end] = MASK * (one.end - one.start)
            own = known.get(one.name) if one.source == "given" else None
            if one.source == "closed":
                continue
            name = own.name if own else _numbered(one.name or one.kind, names)
            value = own.value if own else one.value
            said.append((one.start, one.end, Parameter(name, value, one.text)))
        there = {one.name for _, _, one in said} | {one.name for one in given}
        return cls(
            text,
            "".join(masked),
            tuple(said),
            tuple(one for one in request.params if one.name not in there),
        )

    @property
    def whole(self) -> Clause:
        """All of it, without courtesies and what ends a sentence."""
        return self.trimmed(Clause(0, len(self.text)))

    def trimmed(self, clause: Clause) -> Clause:
        """Return `clause` without courtesies at its beginning and marks at its end."""
        return Clause(*trimmed_span(self.masked, clause.start, clause.end))

    def words(self, clause: Clause) -> str:
        """Return the words of a clause as they stand in the prompt."""
        return self.text[clause.start : clause.end].strip()

    def params(self, clause: Clause) -> tuple[Parameter, ...]:
        """Return the values that stand in a clause, in their order."""
        return tuple(p for s, e, p in self.said if clause.start <= s and e <= clause.end)

    def call(self, name: str, clause: Clause, needs: tuple[str, ...] = ()) -> SubIntent:
        """Return the API call that a clause asks for.

        Raises:
            Unclear: it asks for more than one thing.
        """
        clause = self.trimmed(clause)
        masked = self.masked[clause.start : clause.end]
        first = _FIRST.match(masked)
        verb = first[1].lower() if first else ""
        self.check_plain(clause)
        words = self.words(clause)
        return SubIntent(
            id=name,
            goal=words,
            kind="api_call",
            verb=verb,
            action=ACTIONS.get(verb, "other"),
            params=(*self.params(clause), *self.unsaid),
            depends_on=needs,
        )

    def transform(self, name: str, clause: Clause, needs: tuple[str, ...]) -> SubIntent | None:
        """Return the transform that a clause asks for; None if it asks for none.

        Raises:
            Unclear: it is one, and has more than a pattern understands.
        """
        clause = self.trimmed(clause)
        found = _TRANSFORM.match(self.masked, clause.start, clause.end)
        if found is None:
            return None
        self.check_plain(Clause(found.start("target"), clause.end))
        kind = TRANSFORMS[found["verb"].lower()]
        if kind == "filter" and self.counts(found.start("target")):
            kind = "limit"
        # "count by state" and "count state" are two things; for the others "by" says nothing.
        start = found.start("by") if kind == "count" and found["by"] else found.start("target")
        topic = self.text[start : clause.end].strip()
        if not topic and kind != "count":
            raise Unclear(f"{self.words(clause)!r} does not say by what")
        return SubIntent(
            id=name,
            goal=self.words(clause),
            kind="data_transform",
            verb=found["verb"].lower(),
            transform=kind,
            topic=topic,
            params=self.params(clause),
            depends_on=needs,
        )

    def counts(self, at: int) -> bool:
        """Return whether a number stands at `at`: "keep the first 5" keeps so many."""
        end = _END.match(self.masked, at)
        start = end.end() if end else at
        return any(s == start and isinstance(p.value, int) for s, _, p in self.said)

    def check_plain(self, clause: Clause) -> None:
        """Return if a clause asks for one thing and under no condition.

        Raises:
            Unclear: it has a word that no pattern understands.
        """
        masked = self.masked[clause.start : clause.end]
        words = _WORD.findall(masked.lower())
        for i, word in enumerate(words):
            # "before <date>" is a condition on a value, which a resolver can place.
            dated = word in {"after", "before"} and words[i + 1 : i + 2] != []
            if word in NEGATION or (word in _JOINTS and not (dated and MASK in words[i + 1])):
                raise Unclear(f"{word!r} joins or turns round more than a pattern understands")
        odd = _QUALIFIED.search(masked) or re.search(r"[,;:?!]", masked)
        if odd is not None:
            raise Unclear(f"{odd[0]!r} is more than a pattern understands")


@lru_cache(maxsize=16)
def _closed(catalog: Catalog) -> ClosedValues:
    return ClosedValues(catalog.closed, synonyms=catalog.synonyms, labels=catalog.labels)


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}{seen[name]}"
