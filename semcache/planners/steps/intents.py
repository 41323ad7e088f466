"""Intents: what a goal asks for, step by step, before anyone says which operations do it.

A decomposer turns a goal into `SubIntent`s; a resolver finds an operation for each; an assembler
makes the plan, whose nodes name the intents that they serve (under the key `intent`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic_core import CoreSchema, core_schema

from semcache.canonical import JsonObject, as_object
from semcache.plans.document import ExecutionPlan
from semcache.ports import PlanRequest
from semcache.prompts.parameter import Parameter

IntentKind: TypeAlias = Literal["api_call", "data_transform", "output", "user_input"]
"""What kind of step an intent is."""

Action: TypeAlias = Literal[
    "list", "get", "create", "update", "delete", "search", "execute", "other"
]
"""What an API call does, in one of eight words."""

Transform: TypeAlias = Literal["filter", "sort", "group", "count", "aggregate", "limit", "other"]
"""What a data transform does to the result before it; `other` is nothing built in."""

INTENT_KEY = "intent"
"""Key under which a node of a plan names the intent that it serves."""

GOAL = "goal"
"""Id of the goal in its graph; steps are `step1`, `step2`…"""

MAX_INTENTS = 50
"""Steps of a decomposition at most: half of what an engine runs, for a step may take two nodes."""

_VERBS: dict[Action, str] = {
    "list": "list fetch retrieve",
    "get": "get read show view",
    "create": "create add new make",
    "update": "update edit modify change",
    "delete": "delete remove drop",
    "search": "search find query lookup",
    "execute": "execute run invoke call",
}
ACTIONS: Mapping[str, Action] = {
    verb: action for action, verbs in _VERBS.items() for verb in verbs.split()
}
"""Verb → the action that it names (specs/ccos.md, E1); a verb that is not here is `other`."""


def _as_json(parameter: Parameter) -> JsonObject:
    told: JsonObject = {"name": parameter.name, "value": parameter.value}
    return told if parameter.mention is None else {**told, "mention": parameter.mention}


def _parameter(told: object) -> Parameter:
    if isinstance(told, Parameter):
        return told
    if not isinstance(told, dict) or not {"name", "value"} <= told.keys():
        raise ValueError(f"a parameter is {told!r}; expected an object with `name` and `value`")
    return Parameter(told["name"], told["value"], told.get("mention"))


class _Kept:
    """Keeps a parameter by the two functions above: pydantic cannot follow a recursive alias."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(_as_json)
        return core_schema.no_info_plain_validator_function(_parameter, serialization=written)


Said: TypeAlias = Annotated[Parameter, _Kept]
"""A parameter, and how it is kept as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubIntent:
    """One step of a goal: what shall be done, not yet by which operation."""

    id: str
    """Unique in its decomposition: `step1`, `step2`…; a plan's nodes name it."""
    goal: str
    """What shall be done, in the words of the prompt or of the model that took it apart."""
    kind: IntentKind
    verb: str = ""
    """The verb as it was said, in lower case: `fetch`. Empty if there is none."""
    action: Action = "other"
    """Of an API call: what `verb` amounts to."""
    transform: Transform | None = None
    """Of a data transform: what it does; None for every other kind."""
    topic: str = ""
    """Of a user input: what is asked for (`page size`). Of a data transform: by what (`label bug`,
    the `transform_target` of specs/ccos.md). Empty for every other kind."""
    params: tuple[Said, ...] = ()
    """The values said for this step, each with its words in the prompt. A name is a guess by kind
    (`number`, `identifier`) unless the caller or a model gave it."""
    depends_on: tuple[str, ...] = ()
    """Ids of the intents whose results it needs."""
    suggested: str | None = None
    """An operation that the decomposition names for it; None: it names none."""
    no_tool: bool = False
    """Whether the decomposition looked at the operations and says that none fits: no guessing."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A goal taken apart."""

    goal: str
    """The prompt."""
    intents: tuple[SubIntent, ...]
    """The steps, in the order in which they were said; at least one."""
    confidence: float
    """How sure the strategy is of the whole, in [0, 1]."""
    strategy: str
    """Which strategy: `pattern:sequential_actions`, `intent-first`, `grounded`."""
    reasons: tuple[str, ...] = ()
    """What led to it, in order: the strategies that deferred before, and why."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """A strategy leaves a goal to another one."""

    strategy: str
    why: str
    """What it cannot settle, for people and for the reasons of a decomposition."""


class Decomposer(Protocol):
    """Takes a goal apart into steps, or leaves it to another. Safe from several threads."""

    @property
    def name(self) -> str:
        """Which strategy this is, and by which version of its prompt text."""

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the steps of `request.prompt`, or why this strategy cannot tell them.

        Raises:
            NotActionable: a model says that this cannot be done.
            ModelError: the model behind it cannot answer.
        """


def serves(plan: ExecutionPlan) -> dict[str, str]:
    """Return node of `plan` → id of the intent that it serves, for the nodes that name one.

    Routes plans name it on the node, tasks plans on the task, programs on the instruction.
    """
    body = as_object(plan.to_dict())  # a plan of one's own may be a list
    listed = [(name, node) for name, node in body.items() if isinstance(node, dict)]
    for key, name_key in (("tasks", "id"), ("instructions", "seq_no")):
        steps = body.get(key)
        if isinstance(steps, list):
            listed += [(str(one.get(name_key)), one) for one in steps if isinstance(one, dict)]
    return {
        name: intent for name, node in listed if isinstance(intent := node.get(INTENT_KEY), str)
    }


# What steps need of one another ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DependencyIssue:
    """Something about the dependencies that a person should know."""

    code: Literal["cycle", "forward", "unknown"]
    """`forward`: a step needs a later one (harmless: it waits). The others keep a plan from being
    made: `cycle`, or a step that needs one that there is not."""
    what: str
    intents: tuple[str, ...]


def issues(intents: Sequence[SubIntent]) -> Iterator[DependencyIssue]:
    """Yield what is odd about the dependencies of `intents`."""
    at = {one.id: i for i, one in enumerate(intents)}
    for i, one in enumerate(intents):
        for other in dict.fromkeys(one.depends_on):
            if other not in at:
                what = f"{one.id} needs {other!r}, which is no step"
                yield DependencyIssue("unknown", what, (one.id, other))
            elif at[other] > i:
                what = f"{one.id} needs {other}, which was said later"
                yield DependencyIssue("forward", what, (one.id, other))
    for cycle in _cycles({one.id: [d for d in one.depends_on if d in at] for one in intents}):
        what = " needs ".join((*cycle, cycle[0])) + ": a circle"
        yield DependencyIssue("cycle", what, cycle)


def _cycles(needed: Mapping[str, list[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles until none is left, each with one of its dependencies cut."""
    left = {name: list(dict.fromkeys(others)) for name, others in needed.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib tells it as predecessors: each name is needed by the next one.
            found = list(reversed(error.args[1]))[:-1]
            yield tuple(found)
            left[found[0]].remove(found[1 % len(found)])
        else:
            return


def in_order(intents: Sequence[SubIntent]) -> Iterator[SubIntent]:
    """Yield steps so that each comes after those that it needs, else as they stand.

    There must be no circle, and no dependency on a step that there is not: see `issues`.
    """
    waiting, done = list(intents), set[str]()
    while waiting:
        ready = next(one for one in waiting if done.issuperset(one.depends_on))
        waiting.remove(ready)
        done.add(ready.id)
        yield ready
