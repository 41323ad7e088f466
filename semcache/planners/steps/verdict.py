"""Verification: what a person would ask before a plan runs, told as findings and a verdict.

Rules alone, over the steps and their operations: does every step use what it waits for, is every
value and every word of the goal somewhere, may it write what it writes. What is found goes back to
whoever took the goal apart, for a bounded number of rounds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from semcache.catalog.builtin import ASK_USER
from semcache.catalog.catalog import Catalog
from semcache.catalog.shape import snake
from semcache.errors import InvalidSettings
from semcache.planners.arguments.effects import excluded_words, says_write
from semcache.planners.arguments.operation_index import VERBS, content, known_as
from semcache.planners.steps.clauses import TRANSFORMS
from semcache.planners.steps.intents import Decomposition, SubIntent
from semcache.planners.steps.resolution import NoTool, Referral, Resolution, Resolved
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.tokens import tokens
from semcache.prompts.words import NEGATION, REQUESTS

ROUNDS = 2
"""Repairs of one plan at most."""

# Words that hold steps together, and those of a question; no step has to speak of them.
_JOINTS = frozenset("also and ask asking but me plus so then user".split())
_BACK = frozenset("it them these those they that this each its their".split())
_EACH = _BACK | frozenset("all each every".split())
# Sources of operations that account for every word of a step.
_ACCOUNTED = frozenset(["catalog", "learned"])
# Words by which people ask for what is built in, beside its topic.
_BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "output": ("print", "display", "show", "output", "result", "list"),
    "data_transform": ("first", "only", "just", "result", "list", "ones"),
}

Draft = TypeVar("Draft")


@dataclass(frozen=True, slots=True)
class Concern:
    """Something about a plan that a person should know before it runs."""

    code: Literal["unresolved", "data_flow", "value", "coverage", "effect"]
    intent: str
    """Id of the step; empty for the goal as a whole."""
    what: str
    grave: bool = True
    """Whether it keeps the plan from running."""

    def __str__(self) -> str:
        return f"{self.intent or 'goal'}: {self.what}"


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """Whether a plan may run."""

    findings: tuple[Concern, ...] = ()
    """The grave ones first."""

    @property
    def runs(self) -> bool:
        """Whether the plan may run as it is."""
        return not any(one.grave for one in self.findings)

    @property
    def told(self) -> str:
        """The findings as text, for a model or a person; empty if there are none."""
        return "; ".join(map(str, self.findings))


def verify(
    goal: Decomposition,
    resolved: Mapping[str, Resolved],
    catalog: Catalog,
    *,
    params: Sequence[Parameter] = (),
) -> PlanVerdict:
    """Return what is to be said of a plan before it runs.

    The goal is held against what the operations do, never against the words of the steps, which
    whoever took it apart may have put into them. `params`: the values that the caller gave; each
    must go somewhere, and what was only found in the words need not.
    """
    # What a step that does nothing yet leaves out says nothing of the plan.
    if open_ := tuple(_unresolved(goal, resolved)):
        return PlanVerdict(open_)
    found = [
        *_data_flow(goal, resolved),
        *_values(goal, resolved, params),
        *_given(goal, resolved, params),
        *_coverage(goal, resolved, catalog),
        *_effects(goal, resolved, catalog),
    ]
    return PlanVerdict(tuple(sorted(found, key=lambda one: not one.grave)))


def repaired(
    make: Callable[[str], Draft], judge: Callable[[Draft], PlanVerdict], *, rounds: int = ROUNDS
) -> tuple[Draft, PlanVerdict]:
    """Return a draft and its verdict, made anew with the findings until it may run.

    `make` takes what is wrong with the last draft, empty for the first. It ends after `rounds`
    repairs, or when a repair changes nothing about the findings.

    Raises:
        InvalidSettings: `rounds` is negative.
    """
    if rounds < 0:
        raise InvalidSettings(f"rounds is {rounds!r}; expected 0 or more repairs")
    draft = make("")
    verdict = judge(draft)
    for _ in range(rounds):
        if verdict.runs:
            break
        before = verdict
        draft = make(verdict.told)
        verdict = judge(draft)
        if verdict == before:
            break
    return draft, verdict


def _unresolved(goal: Decomposition, resolved: Mapping[str, Resolved]) -> Iterator[Concern]:
    for intent in goal.intents:
        match resolved.get(intent.id):
            case Resolution():
                continue
            case Referral(question=question):
                yield Concern("unresolved", intent.id, question)
            case NoTool(why=why):
                yield Concern("unresolved", intent.id, f"no operation does it: {why}")
            case None:
                yield Concern("unresolved", intent.id, "nothing was found for it")


def _found(
    goal: Decomposition, resolved: Mapping[str, Resolved]
) -> Iterator[tuple[SubIntent, Resolution]]:
    for intent in goal.intents:
        one = resolved.get(intent.id)
        if isinstance(one, Resolution):
            yield intent, one


def _data_flow(goal: Decomposition, resolved: Mapping[str, Resolved]) -> Iterator[Concern]:
    """Yield the steps that wait for a result and do not use it, and answers that nobody uses."""
    used: set[str] = set()
    for intent, one in _found(goal, resolved):
        taken = {wire.step for wire in one.wires}
        used |= taken | (set(intent.depends_on) if intent.kind == "output" else set())
        for step in intent.depends_on:
            if step in taken or intent.kind == "output":
                continue
            # "then ping" only says when; "then close it" speaks of what came before.
            back = intent.kind != "api_call" or not _BACK.isdisjoint(tokens(intent.goal))
            what = f"{intent.goal!r} waits for {step!r} and uses nothing of it"
            yield Concern("data_flow", intent.id, what, grave=back)
    for intent, one in _found(goal, resolved):
        if one.operation == ASK_USER and intent.id not in used:
            what = f"asks for {intent.topic!r}, and no step uses the answer"
            yield Concern("data_flow", intent.id, what)


def _values(
    goal: Decomposition, resolved: Mapping[str, Resolved], held: Sequence[Parameter]
) -> Iterator[Concern]:
    """Yield the values of calls that nobody said."""
    for intent, one in _found(goal, resolved):
        if intent.kind in {"user_input", "output"}:
            continue
        for param in one.params:
            if not _was_said(param, goal.goal, held):
                what = f"{param.name!r} is {param.value!r}, which nobody said"
                yield Concern("value", intent.id, what)


def _given(
    goal: Decomposition, resolved: Mapping[str, Resolved], held: Sequence[Parameter]
) -> Iterator[Concern]:
    """Yield the values that the caller gave and that no operation takes."""
    used = [param for _, one in _found(goal, resolved) for param in one.params]
    for param in held:
        if not any(_is_held(one, param) for one in used):
            yield Concern("value", "", f"{param.name!r} was given, and nothing takes it")


def _is_held(used: Parameter, held: Parameter) -> bool:
    return name_key(used.name) == name_key(held.name) or str(used.value) == str(held.value)


def _was_said(param: Parameter, goal: str, held: Sequence[Parameter]) -> bool:
    """Return whether a value stands in the goal or was given; a word may stand for another."""
    if not any(map(str.isdigit, str(param.value))):
        return True
    if any(_is_held(param, one) for one in held):
        return True
    said = param.mention if param.mention is not None else str(param.value)
    return said.casefold() in goal.casefold()


def _coverage(
    goal: Decomposition, resolved: Mapping[str, Resolved], catalog: Catalog
) -> Iterator[Concern]:
    """Yield the values and words of the goal that no operation has."""
    texts = [text.casefold() for text in _taken(goal, resolved)]
    for mention in find_mentions(goal.goal):
        said = mention.text.strip("\"'").casefold()
        if not any(said in text or (text and text in said) for text in texts):
            what = f"{mention.text!r} was said, and no step has it"
            yield Concern("coverage", "", what)
    # Of verbs `_effects` speaks, of what is turned round `model.verification`.
    aside = VERBS.keys() | REQUESTS | NEGATION
    said_words = [word for word in content(goal.goal.casefold()) if word not in aside]
    known = {word for text in texts for word in content(text)} | _told(goal, resolved, catalog)
    if _has_counterpart(goal, resolved):  # "unless they are closed" is well said by `open`
        known |= set(excluded_words(goal.goal))
    lost = list(dict.fromkeys(word for word in said_words if word not in known))
    if lost:
        what = f"no step speaks of {', '.join(map(repr, lost[:10]))}"
        yield Concern("coverage", "", what)


def _has_counterpart(goal: Decomposition, resolved: Mapping[str, Resolved]) -> bool:
    """Return whether a step has a value in the place of one that the goal excludes."""
    said = goal.goal.casefold()
    return any(
        str(param.value).casefold() not in said
        for _, one in _found(goal, resolved)
        for param in one.params
    )


def _taken(goal: Decomposition, resolved: Mapping[str, Resolved]) -> Iterator[str]:
    """Yield the texts that operations take, and those of steps whose every word is accounted for.

    What a model named an operation for, or put into the words of a built-in step, nobody accounts
    for: there only what goes into the call counts.
    """
    by_patterns = goal.strategy.startswith("pattern")
    for intent, one in _found(goal, resolved):
        yield from (param.mention or str(param.value) for param in one.params)
        yield from (text for text in one.input.values() if isinstance(text, str))
        if one.source == "builtin":
            yield intent.topic
            yield " ".join(_BUILT_IN.get(intent.kind, ()))
            yield " ".join(verb for verb, kind in TRANSFORMS.items() if kind == intent.transform)
        if by_patterns or one.source in _ACCOUNTED:
            yield intent.goal


def _told(goal: Decomposition, resolved: Mapping[str, Resolved], catalog: Catalog) -> set[str]:
    """Return the words of the operations that were found, and what a catalog calls them beside."""
    said: set[str] = set()
    for _, one in _found(goal, resolved):
        if one.operation in catalog:
            known = known_as(catalog.get(one.operation), catalog)
            filled = [*one.input, *(wire.property for wire in one.wires)]
            said |= {known.verb, *known.nouns} | known.told
            said |= {word for name in filled for word in content(snake(name))}
    for word, meant in catalog.synonyms.items():
        if {*content(meant)} <= said:
            said |= {*content(word)}
    return said | _JOINTS | _EACH


def _effects(
    goal: Decomposition, resolved: Mapping[str, Resolved], catalog: Catalog
) -> Iterator[Concern]:
    """Yield the operations that write and were not asked for, or not so often."""
    for intent, one in _found(goal, resolved):
        if one.operation not in catalog or catalog.get(one.operation).effect != "write":
            continue
        if not says_write(goal.goal, catalog.get(one.operation), catalog):
            what = f"{one.operation!r} writes, and no word of the goal asks for that"
            yield Concern("effect", intent.id, what)
        elif any(wire.each for wire in one.wires) and _EACH.isdisjoint(tokens(intent.goal)):
            what = (
                f"{one.operation!r} writes once for each of a list, and the step says nothing of it"
            )
            yield Concern("effect", intent.id, what)
