"""Reading the steps that a model told: strictly, and with everything that is wrong at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import get_args

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Operation
from semcache.errors import InvalidInput, NotActionable
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.model.planner import REFUSAL
from semcache.planners.steps.clauses import TRANSFORMS
from semcache.planners.steps.intents import (
    ACTIONS,
    MAX_INTENTS,
    Decomposition,
    IntentKind,
    SubIntent,
)
from semcache.ports import PlanRequest
from semcache.prompts.mentions import locate_mentions
from semcache.prompts.parameter import Parameter, name_key
from semcache.runs.dialog import Accepted, Rejected, json_object

_KINDS: Mapping[str, IntentKind] = {kind: kind for kind in get_args(IntentKind)}


@dataclass(frozen=True, slots=True)
class StepReader:
    """How an answer to one request is read."""

    request: PlanRequest
    tools: tuple[Operation, ...] | None
    """What the model was shown; None: no operations, and so it names none."""
    known: Mapping[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        known = {name_key(one.name): one for one in self.request.params}
        object.__setattr__(self, "known", known)

    def read(self, text: str) -> Accepted[tuple[SubIntent, ...]] | Rejected[tuple[SubIntent, ...]]:
        """Return the steps of an answer, or everything that is wrong with it.

        Raises:
            NotActionable: the model says that the request cannot be taken apart.
        """
        try:
            found = json_object(text, listed="steps")
        except InvalidInput as error:
            return Rejected((str(error),))
        why = found.get(REFUSAL)
        if isinstance(why, str) and why:
            raise NotActionable(f"the model cannot take the request apart: {why}")
        steps = found.get("steps")
        if not isinstance(steps, list) or not steps:
            return Rejected((f"`steps` is {steps!r:.80}; expected a list of at least one step",))
        if len(steps) > MAX_INTENTS:
            return Rejected((f"`steps` has {len(steps)} steps; expected at most {MAX_INTENTS}",))
        errors: list[str] = []
        intents = [self._intent(i, step, len(steps), errors) for i, step in enumerate(steps)]
        if not errors:
            made = IntentGraph.of(Decomposition(self.request.prompt, tuple(intents), 1, ""))
            errors = [knot.what for knot in made.knots if knot.code != "forward"]
        return Rejected(tuple(errors)) if errors else Accepted(tuple(intents))

    def _intent(self, at: int, step: Json, count: int, errors: list[str]) -> SubIntent:
        where = f"Step {at}"
        if not isinstance(step, dict):
            errors.append(f"{where} is {step!r:.80}; expected an object")
            step = {}
        goal, topic = _words(step, "description"), _words(step, "topic")
        kind = self._kind(step, where, errors)
        if not goal:
            errors.append(f"{where} has no `description`")
        if kind == "user_input" and not topic:
            errors.append(f"{where} asks a person and has no `topic`")
        verb = _words(step, "action").lower()
        transform = (
            TRANSFORMS.get(verb.removesuffix("_by"), "other") if kind == "data_transform" else None
        )
        suggested, no_tool = self._tool(step, kind, where, errors)
        return SubIntent(
            id=f"step{at + 1}",
            goal=goal,
            kind=kind,
            verb=verb,
            action=ACTIONS.get(verb, "other") if kind == "api_call" else "other",
            transform=transform,
            topic=topic,
            params=(*self._params(step, where, errors), *(self._unsaid(step, kind))),
            depends_on=tuple(_needs(step, where, count, errors)),
            suggested=suggested,
            no_tool=no_tool,
        )

    def _kind(self, step: JsonObject, where: str, errors: list[str]) -> IntentKind:
        said = step.get("intent_type")
        kind = _KINDS.get(said) if isinstance(said, str) else None
        if kind is not None:
            return kind
        known = ", ".join(_KINDS)
        errors.append(f"{where} has the intent_type {said!r}; expected one of {known}")
        return "api_call"

    def _tool(
        self, step: JsonObject, kind: IntentKind, where: str, errors: list[str]
    ) -> tuple[str | None, bool]:
        """Return the operation that a step names, and whether it says that there is none."""
        if self.tools is None or kind != "api_call":
            return None, False
        named = step.get("tool")
        if named is None or named in ("", "null", "none"):
            return None, "tool" in step
        if not isinstance(named, str) or named not in self.request.catalog.names:
            said = named if isinstance(named, str) else repr(named)
            errors.append(f"{where}: {self.request.catalog.unknown(said)}")
            return None, False
        return named, False

    def _params(self, step: JsonObject, where: str, errors: list[str]) -> Iterator[Parameter]:
        given = step.get("params") or {}
        if not isinstance(given, dict):
            errors.append(f"{where} has `params` {given!r:.80}; expected an object")
            return
        for name, told in given.items():
            if name.startswith("_") or not name.strip():
                continue
            known = self.known.get(name_key(name))
            yield known if known is not None else self._said(name, told)

    def _unsaid(self, step: JsonObject, kind: IntentKind) -> Iterator[Parameter]:
        """Yield the values that the caller gives beside the prompt: any call may need them."""
        told = step.get("params")
        named = {name_key(name) for name in told} if isinstance(told, dict) else set[str]()
        for key, one in self.known.items():
            if kind == "api_call" and one.mention is None and key not in named:
                yield one

    def _said(self, name: str, told: Json) -> Parameter:
        """Return a parameter with the words of the prompt that carry it, if they stand there."""
        value, words = told, None
        if isinstance(told, dict) and "value" in told and told.keys() <= {"value", "words"}:
            value, words = told["value"], told.get("words")
        for mention in (words, None):
            parameter = Parameter(name, value, mention if isinstance(mention, str) else None)
            try:
                found = locate_mentions(self.request.prompt, [parameter])
            except InvalidInput:
                continue
            if found:
                return Parameter(name, value, found[0].text)
        return Parameter(name, value)


def _words(step: JsonObject, key: str) -> str:
    said = step.get(key)
    return said.strip() if isinstance(said, str) else ""


def _needs(step: JsonObject, where: str, count: int, errors: list[str]) -> Iterator[str]:
    listed = step.get("depends_on") or []
    if not isinstance(listed, list):
        listed = [listed]
    for one in listed:
        at = int(one) if isinstance(one, str) and one.isdecimal() else one
        if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < count:
            errors.append(
                f"{where} depends on {one!r:.40}; expected positions from 0 to {count - 1}"
            )
            continue
        yield f"step{at + 1}"
