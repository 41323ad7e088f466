"""Clauses: a prompt with its values masked, so that patterns see its structure and nothing else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from semcache.catalog.catalog import Catalog
from semcache.planners.arguments.operation_index import domains_of
from semcache.planners.arguments.step_account import COURTESIES, MARKS, THANKS
from semcache.planners.steps.intents import ACTIONS, SubIntent, Transform
from semcache.ports import PlanRequest
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.recognizers.closed_values import ClosedValues
from semcache.prompts.words import (
    ARTICLES,
    AUXILIARIES,
    COMPARISON,
    DIRECTION,
    NEGATION,
    ORDER,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    QUESTIONS,
    ROLES,
    SCOPE,
)

MASK = "\ufffc"
"""Stands for every character of a value in a masked prompt."""

_WORD = re.compile(rf"[^\W_][\w'-]*|{MASK}+")
_BEFORE_NOUNS = ARTICLES | PRONOUNS | QUANTIFIERS | SCOPE
_AFTER_NOUNS = ROLES | PREPOSITIONS | COMPARISON | QUESTIONS | AUXILIARIES | DIRECTION
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
class Prompt:
    """A prompt as patterns read it."""

    text: str
    masked: str
    """The same, with `MASK` for each character of a value; offsets are the same."""
    said: tuple[tuple[int, int, Parameter], ...]
    """The values that stand in the text: start, end, parameter."""
    unsaid: tuple[Parameter, ...]
    """The values that the caller gives beside the text."""
    verbs: frozenset[str]
    """Verbs that may begin an API call: the common ones and those of the catalog."""
    domains: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, request: PlanRequest, domains: Mapping[str, Sequence[str]]) -> "Prompt":
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
            frozenset(ACTIONS) | verbs_of(request.catalog),
            domains,
        )

    @property
    def whole(self) -> Clause:
        """All of it, without courtesies and what ends a sentence."""
        return self.trimmed(Clause(0, len(self.text)))

    def trimmed(self, clause: Clause) -> Clause:
        """Return `clause` without courtesies at its beginning and marks at its end."""
        start = clause.start + _spaces(self.masked[clause.start : clause.end])
        polite = COURTESIES.match(self.masked, start, clause.end)
        start = polite.end() if polite else start
        left = self.masked[start : clause.end].rstrip(MARKS)
        while (thanks := THANKS.search(left)) is not None:
            left = left[: thanks.start()].rstrip(MARKS)
        return Clause(start, start + len(left))

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
        first = first if verb in self.verbs else None
        verb = verb if first else ""
        self.check_plain(clause)
        words = self.words(clause)
        return SubIntent(
            id=name,
            goal=words,
            kind="api_call",
            verb=verb,
            noun=_noun(masked, len(first[0]) if first else 0),
            action=ACTIONS.get(verb, "other"),
            params=(*self.params(clause), *self.unsaid),
            depends_on=needs,
            domain=next(iter(domains_of(words, self.domains)), None)
            or next(iter(domains_of(self.text, self.domains)), None),
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


@lru_cache(maxsize=16)
def verbs_of(catalog: Catalog) -> frozenset[str]:
    """Return the verbs of a catalog: the first word of each name, and words that stand for one."""
    verbs = {name_key(name).partition("_")[0] for name in catalog.names}
    verbs |= {name_key(name.rpartition(".")[2]).partition("_")[0] for name in catalog.names}
    verbs |= {word.lower() for word, meant in catalog.synonyms.items() if meant.lower() in verbs}
    return frozenset(verbs - {""})


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}{seen[name]}"


def _spaces(text: str) -> int:
    return len(text) - len(text.lstrip())


def _noun(masked: str, start: int) -> str:
    """Return the words after the verb that name what it is done to; empty if there are none."""
    runs: list[list[str]] = [[]]
    for found in _WORD.finditer(masked, start):
        word = found[0].lower()
        if word in _AFTER_NOUNS:
            break
        if MASK in word or word.isdigit() or word in _BEFORE_NOUNS:
            runs.append([])
        else:
            runs[-1].append(word)
    # "the first issues" are issues, and "order 17" is an order.
    named = ([word for word in run if word not in ORDER] for run in runs)
    return " ".join(next((run for run in (*named, *runs) if run), []))
