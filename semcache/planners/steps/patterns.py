"""Decomposition by patterns: a few ways in which people put two steps into one sentence.

The five of specs/ccos.md (E2), read with the values masked and extended to chains of any length.
They are humble: a text with one joint more than they understand is left to another strategy.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from semcache.planners.steps.clauses import TRANSFORMS, Clause, PromptClauses, Unclear
from semcache.planners.steps.intents import MAX_INTENTS, Decomposition, Deferred, SubIntent
from semcache.ports import PlanRequest

Build: TypeAlias = Callable[[PromptClauses, re.Match[str]], Iterable[SubIntent]]
"""From a prompt and the match of a pattern in it to the steps; raises `Unclear` to defer."""
MAX_CHARS = 1000
"""Characters of a prompt that patterns look at; a longer one is no sentence of theirs."""
_RAGGED = re.compile(r"\s{9}")  # runs of blanks would make the patterns slow, and say nothing


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way in which steps are said."""

    name: str
    regex: re.Pattern[str]
    """Matched against the whole masked prompt, without courtesies and final marks. Offsets are
    those of the prompt: `PromptClauses.words` gives what stands there."""
    build: Build
    confidence: float = 0.9


class Patterns:
    """Takes goals apart by patterns alone, with no model. Satisfies `Decomposer`."""

    def __init__(self, patterns: Sequence[Pattern] | None = None) -> None:
        """Keep the patterns, tried in this order; None: the ones that ship (`PATTERNS`)."""
        self._patterns = PATTERNS if patterns is None else tuple(patterns)

    name = "patterns-1"

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the steps by the first pattern that understands all of the prompt, or why none."""
        if request.grounding is not None:
            return Deferred("patterns", "the domain has rules for this, which no pattern knows")
        if len(request.prompt) > MAX_CHARS or _RAGGED.search(request.prompt):
            return Deferred("patterns", "the text is too long or too ragged for a sentence")
        prompt = PromptClauses.of(request)
        whole = prompt.whole
        unclear: list[str] = []
        for pattern in self._patterns:
            match = pattern.regex.fullmatch(prompt.masked, whole.start, whole.end)
            if match is None:
                continue
            try:
                intents = tuple(pattern.build(prompt, match))
            except Unclear as why:
                unclear += filter(None, [str(why)])
                continue
            if len(intents) > MAX_INTENTS:
                what = f"it has {len(intents)} steps; a plan has at most {MAX_INTENTS}"
                return Deferred("patterns", what)
            strategy = f"pattern:{pattern.name}"
            return Decomposition(request.prompt, intents, pattern.confidence, strategy)
        return Deferred("patterns", "; ".join(dict.fromkeys(unclear)) or "no pattern fits the text")


# ── the patterns ─────────────────────────────────────────────────────────────────────────────────

_ASK = (
    r"(?:ask|prompt)\s+(?:me|us|(?:the\s+)?user)\s+(?:first\s+)?(?:for|about)\s+"
    r"(?:(?:the|a|an|my)\s+)?"
)
_TOPIC = r"(?P<topic>[^,;:.!?]+(?:,[^,;:.!?]+)*?)"
_TOPICS = re.compile(r"\s{0,99},\s*(?:and\s+)?(?:the\s+)?|\s{1,99}and\s+(?:the\s+)?", re.IGNORECASE)
_TOPIC_WORDS = 5
"""Words that a topic has at most; a longer one is a sentence of its own."""


def _named(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def _asked(prompt: PromptClauses, match: re.Match[str]) -> Iterator[SubIntent]:
    """Yield a question for each topic, then the call that needs the answers."""
    start, end = match.span("topic")
    cuts = [found.span() for found in _TOPICS.finditer(prompt.masked, start, end)]
    edges = [start, *(at for cut in cuts for at in cut), end]
    needs = []
    for i, (at, until) in enumerate(zip(edges[::2], edges[1::2], strict=True), 1):
        clause = Clause(at, until)
        topic = prompt.words(clause)
        prompt.check_plain(clause)
        if not topic or len(topic.split()) > _TOPIC_WORDS:
            raise Unclear(f"{topic[:60]!r} is no topic to ask about")
        needs.append(f"step{i}")
        yield SubIntent(
            id=needs[-1],
            goal=f"Ask user for {topic}",
            kind="user_input",
            verb="ask",
            topic=topic,
            params=prompt.params(clause),
        )
    rest = Clause(*match.span("rest"))
    yield prompt.call(f"step{len(needs) + 1}", rest, tuple(needs))


_VERBS = "|".join(TRANSFORMS)
_SHOW = re.compile(
    r"(?:print|display|show|output)\s+(?:me\s+)?(?:(?:all\s+of\s+)?(?:them|it|these|those)"
    r"|the\s+(?:results?|list|output))(?:\s+as\s+(?:a\s+)?(?P<form>table|json|list))?\Z",
    re.IGNORECASE,
)
# "then" always parts two steps; "and" only before what is done to a result.
_JOINT = re.compile(
    r"\s*[,;]?\s+(?:and\s+)?then,?\s+|\s*;\s+"
    rf"|\s*,?\s+and\s+(?=(?:{_VERBS})\b)|\s*,\s+(?=(?:{_VERBS})\b)"
    r"|\s*,?\s+and\s+(?=(?:print|display|show|output)\s+(?:me\s+)?(?:all\s+of\s+)?(?:them|it|the)\b)",
    re.IGNORECASE,
)


def _chain(
    prompt: PromptClauses, match: re.Match[str], *, kinds: frozenset[str]
) -> list[SubIntent]:
    """Return a step for each part of a chain, each needing the one before it."""
    start, end = match.span()
    cuts = [found.span() for found in _JOINT.finditer(prompt.masked, start, end)]
    edges = [start, *(at for cut in cuts for at in cut), end]
    parts = [Clause(*span) for span in zip(edges[::2], edges[1::2], strict=True)]
    if len(parts) < 2:
        raise Unclear
    steps = [prompt.call("step1", parts[0])]
    for i, part in enumerate(parts[1:], 2):
        steps.append(_following(prompt, part, f"step{i}", (f"step{i - 1}",)))
    if not {one.kind for one in steps[1:]} & kinds:
        raise Unclear
    return steps


def _following(prompt: PromptClauses, part: Clause, name: str, needs: tuple[str, ...]) -> SubIntent:
    shown = _SHOW.match(prompt.masked, part.start, prompt.trimmed(part).end)
    if shown is not None:
        goal, form = prompt.words(part), (shown["form"] or "").lower()
        return SubIntent(
            id=name, goal=goal, kind="output", verb="show", topic=form, depends_on=needs
        )
    return prompt.transform(name, part, needs) or prompt.call(name, part, needs)


def _single(prompt: PromptClauses, match: re.Match[str]) -> Iterator[SubIntent]:
    yield prompt.call("step1", Clause(*match.span()))


SINGLE = Pattern("simple_api", _named(".+"), _single, confidence=0.7)
"""One step that one operation does."""
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "action_with_user_input",
        _named(rf"(?P<rest>.+?),?\s+but\s+(?:first\s+)?{_ASK}{_TOPIC}"),
        _asked,
    ),
    Pattern(
        "user_input_then_action",
        _named(rf"{_ASK}{_TOPIC},?\s+(?:and\s+then|then|and)\s+(?P<rest>.+)"),
        _asked,
    ),
    Pattern("sequential_actions", _named(".+"), partial(_chain, kinds=frozenset({"api_call"}))),
    Pattern(
        "action_with_transform", _named(".+"), partial(_chain, kinds=frozenset({"data_transform"}))
    ),
    Pattern("action_with_output", _named(".+"), partial(_chain, kinds=frozenset({"output"}))),
    SINGLE,
)
"""The patterns that ship, in the order in which they are tried."""
