"""What a model's plan does that its prompt does not say, and what the prompt says that it drops."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semcache.binding.codecs import alike
from semcache.binding.generalize.placeholders import placeholder, placeholders
from semcache.binding.leaves import Leaf, survey
from semcache.canonical import Json, leaves
from semcache.catalog.builtin import ASK_USER
from semcache.catalog.catalog import Catalog
from semcache.errors import PlanningError
from semcache.planners.arguments.effects import excluded_words, says_write
from semcache.plans.document import ExecutionPlan
from semcache.ports import Planned, Planner, PlanRequest
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import operator_name
from semcache.prompts.tokens import tokens
from semcache.prompts.words import FUNCTION_WORDS

# Kinds of mentions whose words or value a plan must hold as they are; a date may be respelled.
_LITERAL = frozenset({"number", "money", "percent", "quoted", "code", "identifier", "email", "url"})
_NUMBER = re.compile(r"\d+")
_NEGATED_KEY = re.compile(r"(?:^|_)(?:not|no|non|without|exclude|excluding|except)(?:_|$)")
_USUAL = (0, 1)
"""Numbers that a plan may hold although nobody said them: the first one, none, a step."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What is wrong with a plan beside its prompt, in words for the model that made it."""

    grave: tuple[str, ...] = ()
    """It must not run."""
    light: tuple[str, ...] = ()
    """It should be better, and may run if it does not get so."""


def doubts(
    prompt: str, plan: ExecutionPlan, catalog: Catalog, params: Sequence[Parameter] = ()
) -> Doubts:
    """Return what a plan invents, drops or turns round of its prompt.

    Grave: a write that the prompt does not say, a value that it excludes and the plan asks for, a
    literal value that it says and the plan has not, and, in a plan that writes, a figure that
    nobody said. In a plan that reads such a figure is light.
    """
    body = plan.to_dict()
    data = [leaf for leaf in survey(body) if leaf.role == "data"]
    writes = [name for name in plan.operations() if _writes(name, catalog)]
    grave = [
        f"{name!r} changes something, and the request does not ask for that change; leave it out"
        for name in writes
        if not says_write(prompt, catalog.get(name), catalog)
    ]
    grave += _turned_round(prompt, data, params)
    grave += _dropped(prompt, body, params, catalog)
    invented = tuple(_invented(prompt, data, plan, catalog, params))
    return Doubts((*grave, *invented), ()) if writes else Doubts(tuple(grave), invented)


class VerifiedPlanner:
    """A planner whose plans are held against their prompts. Satisfies `ports.Planner`.

    For planners that ask a model: what rules plan, they account for themselves.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def __repr__(self) -> str:
        return f"VerifiedPlanner({self._planner!r})"

    def plan(self, request: PlanRequest) -> Planned:
        """Return the plan of the planner. Raises as it does.

        Raises:
            PlanningError: the plan does what the prompt does not say.
        """
        return verified(self._planner.plan(request), request)


def verified(planned: Planned, request: PlanRequest) -> Planned:
    """Return a plan that holds against its prompt.

    Raises:
        PlanningError: the plan does what the prompt does not say.
    """
    found = doubts(request.prompt, planned.plan, request.catalog, planned.params)
    if found.grave:
        raise PlanningError(
            f"no plan for {request.prompt[:80]!r} may run: {'; '.join(found.grave)}"
        )
    return planned


def _writes(name: str, catalog: Catalog) -> bool:
    return name in catalog and catalog.get(name).effect == "write" and name != ASK_USER


# What is turned round ──────────────────────────────────────────────────────────────────────────


def _turned_round(prompt: str, data: Sequence[Leaf], params: Sequence[Parameter]) -> Iterator[str]:
    """Yield the values that the prompt excludes and the plan asks for."""
    excluded = {word for word in excluded_words(prompt) if word}
    holders = {leaf.at: leaf for leaf in data}
    held = {placeholder(one.name): one.mention or one.value for one in params}
    for leaf in data:
        value = held.get(leaf.value, leaf.value) if isinstance(leaf.value, str) else None
        if not isinstance(value, str) or _first_word(value) not in excluded:
            continue
        keys = [str(step).casefold() for step in leaf.at]
        siblings = [
            one.value for at, one in holders.items() if at[:-1] == leaf.at[:-1] and at != leaf.at
        ]
        operators = (operator_name(one) for one in siblings if isinstance(one, str))
        negated = any(one and (one.startswith("not") or one == "!=") for one in operators)
        if not negated and not any(_NEGATED_KEY.search(key) for key in keys):
            yield f"the request excludes {value!r}, and the plan asks for it"


def _first_word(value: str) -> str:
    """Return what of a value stands next to a negation, grammar aside: `acme` of "acme/site"."""
    return next((word for word in tokens(value.casefold()) if word not in FUNCTION_WORDS), "")


# What is dropped or invented ────────────────────────────────────────────────────────────────────


def _dropped(
    prompt: str, body: Json, params: Sequence[Parameter], catalog: Catalog
) -> Iterator[str]:
    """Yield the literal values of the prompt that the plan has not."""
    held: list[Json] = [value for _, value in leaves(body) if value is not None]
    named = {one.name for value in held if isinstance(value, str) for one in placeholders(value)}
    held += [one.value for one in params if one.name in named]
    carried = [one.mention or "" for one in params if one.name in named]
    excluded = set(excluded_words(prompt))  # "not closed" is as well said by `open`
    for mention in find_mentions(prompt, closed=catalog.closed):
        literal = mention.kind in _LITERAL or mention.source == "closed"
        literal = literal and mention.text.casefold() not in excluded
        if literal and not _held(mention, held) and not any(mention.text in c for c in carried):
            yield f"the request says {mention.text!r}, and the plan has it nowhere"


def _held(mention: Mention, held: Sequence[Json]) -> bool:
    words = mention.text.strip("\"'").casefold()
    for value in held:
        if alike(mention.value, value) or (isinstance(value, str) and words in value.casefold()):
            return True
        if isinstance(value, list) and any(alike(mention.value, item) for item in value):
            return True
    figures = _NUMBER.findall(mention.text)
    spelled = {run for value in held for run in _NUMBER.findall(str(value))}
    return bool(figures) and all(run in spelled for run in figures)


def _invented(
    prompt: str,
    data: Sequence[Leaf],
    plan: ExecutionPlan,
    catalog: Catalog,
    params: Sequence[Parameter],
) -> Iterator[str]:
    """Yield the figures in what a plan hands to its operations that nobody said."""
    said = set(_NUMBER.findall(prompt))
    for value in (*(m.value for m in find_mentions(prompt)), *(one.value for one in params)):
        said.update(_NUMBER.findall(str(value)))
    listed = set(_listed(plan, catalog))
    for leaf in data:
        value = leaf.value
        if isinstance(value, bool) or not isinstance(value, (int, float, str)) or value in _USUAL:
            continue
        text = str(value)
        if text in listed or text.startswith("$") or placeholders(text):
            continue
        unsaid = [run for run in _NUMBER.findall(text) if run not in said]
        if unsaid:
            yield f"the plan has {value!r}, and {unsaid[0]!r} of it is not said in the request"


def _listed(plan: ExecutionPlan, catalog: Catalog) -> Iterator[str]:
    """Yield the values that the schemas of a plan's operations list, and their defaults."""
    for name in plan.operations():
        if name in catalog:
            for at, value in leaves(catalog.get(name).input_schema):
                if {"enum", "const", "default", "examples"} & set(at):
                    yield str(value)
