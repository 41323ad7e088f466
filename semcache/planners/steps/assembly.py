"""Assembly: the plan of a goal, from its steps and their operations.

A routes plan: questions to a person first, then the steps in an order in which each has what it
needs. Every node names the step that it serves (`intent`). A step that takes one of a list is
called in a loop, once for each item. Values of the prompt are `{{params.x}}` placeholders, so that
the cache can give the plan to other prompts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from semcache.binding.generalize.placeholders import placeholder
from semcache.canonical import Json, JsonObject, as_object, same, with_texts
from semcache.catalog.builtin import ASK_USER
from semcache.catalog.catalog import Catalog
from semcache.errors import PlanningError
from semcache.planners.arguments.data_edges import gives
from semcache.planners.arguments.input_fields import InputField, places
from semcache.planners.steps.intents import INTENT_KEY, SubIntent, in_order
from semcache.planners.steps.resolution import DataEdge, Resolution
from semcache.planners.transforms import CONVERT, EACH
from semcache.plans.codec import check
from semcache.plans.paths import is_expression
from semcache.plans.routes import START, RoutePlan
from semcache.prompts.parameter import Parameter, name_key

END = "end"
_NAME = re.compile(r"[^\W\d][\w-]*")
_SCALARS = frozenset(["integer", "number", "boolean"])
_TOLD = ("type", "format", "enum", "items")
"""What a conversion needs to know of a schema; its bounds are checked when the step is called."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A plan, and what it was made of."""

    plan: RoutePlan
    params: tuple[Parameter, ...]
    """The values that its placeholders stand for; no name twice."""
    serves: Mapping[str, str]
    """Node of the plan → id of the step that it serves."""


def assemble(
    intents: Sequence[SubIntent], resolved: Mapping[str, Resolution], catalog: Catalog
) -> Assembled:
    """Return the plan that does all `intents` by the operations that were found for them.

    `intents` have an order: see `IntentGraph.ordered`.

    Raises:
        PlanningError: a step has no operation, or the plan would not pass `plans.codec`; the
            message tells every finding.
    """
    open_ = [one.id for one in intents if one.id not in resolved]
    if open_ or not intents:
        told = ", ".join(map(repr, open_)) or "any step"
        raise PlanningError(f"there is no operation for {told}; resolve every step first")
    making = _Making(catalog, _renamed(intents, resolved))
    # Questions first: a person is asked before anything is called.
    for one in in_order(sorted(intents, key=lambda one: one.kind != "user_input")):
        making.add(one)
    plan = RoutePlan.from_dict(making.body(intents))
    findings = check(plan, catalog)
    if findings:
        raise PlanningError(f"the assembled plan is not valid: {'; '.join(map(str, findings))}")
    return Assembled(plan, tuple(making.params()), making.serves)


def _renamed(
    intents: Sequence[SubIntent], resolved: Mapping[str, Resolution]
) -> dict[str, Resolution]:
    """Return the resolutions with parameters that have one name and two values told apart."""
    taken: dict[str, Parameter] = {}
    made: dict[str, Resolution] = {}
    for intent in intents:
        one = resolved[intent.id]
        names: dict[str, str] = {}
        for param in one.params:
            name, number = param.name, 2
            while (held := taken.get(name_key(name))) and not _equal(held, param):
                name, number = f"{param.name}_{number}", number + 1
            taken[name_key(name)] = param
            names[param.name] = name
        params = tuple(replace(param, name=names[param.name]) for param in one.params)
        made[intent.id] = replace(one, params=params, input=_with_names(one.input, names))
    return made


def _equal(one: Parameter, other: Parameter) -> bool:
    return same(one.value, other.value) and one.mention == other.mention


def _with_names(given: JsonObject, names: Mapping[str, str]) -> JsonObject:
    def renamed(text: str) -> Json:
        return _PLACEHOLDER.sub(lambda m: placeholder(names.get(m[1], m[1])), text)

    return {key: with_texts(value, renamed) for key, value in given.items()}


_PLACEHOLDER = re.compile(r"\{\{params\.([^{}]+)\}\}")


@dataclass(slots=True)
class _Making:
    """A plan as far as it is made."""

    catalog: Catalog
    resolved: Mapping[str, Resolution]
    nodes: JsonObject = field(default_factory=dict)
    """In the order in which they run, their routes not yet set."""
    serves: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    """Step → the expression that gives its result."""

    def params(self) -> Iterator[Parameter]:
        """Yield each parameter once."""
        known: dict[str, Parameter] = {}
        for one in self.resolved.values():
            known.update({name_key(param.name): param for param in one.params})
        yield from known.values()

    def add(self, intent: SubIntent) -> None:
        """Add the nodes of a step."""
        one = self.resolved[intent.id]
        if not one.operation:  # an output only says what the answer is
            return
        name = intent.id if _NAME.fullmatch(intent.id) else f"step_{len(self.nodes) + 1}"
        operation = self.catalog.get(one.operation)
        into = {place.name: place for place in places(operation.input_schema)}
        given = {key: with_texts(value, _literal) for key, value in one.input.items()}
        if one.operation == ASK_USER:
            given |= self._goes_to(intent.id)
        loop = self._loop(one, name)
        for wire in one.wires:
            value = self._value(wire, loop)
            given[wire.property] = self._fitting(wire, value, into.get(wire.property), name)
        self._put(name, intent, one.operation, given)
        if loop:
            self._close(loop, name)
        self.results[intent.id] = f"$.{loop}.results" if loop else f"$.{name}"

    def _put(self, name: str, intent: SubIntent, operation: str, given: JsonObject) -> None:
        self.nodes[name] = {"operation": operation, "input": given, INTENT_KEY: intent.id}
        self.serves[name] = intent.id
        for node in self.nodes:  # a loop and a conversion serve the step that they are for
            self.serves.setdefault(node, intent.id)
            held = self.nodes[node]
            if isinstance(held, dict):
                held.setdefault(INTENT_KEY, intent.id)

    def _goes_to(self, step: str) -> JsonObject:
        """Return where the answer to a question goes, so that it is asked for as that wants it."""
        users = [
            (one.operation, wire.property)
            for one in self.resolved.values()
            for wire in one.wires
            if wire.step == step
        ]
        if len(users) != 1:
            return {}
        return {"operation": users[0][0], "input": users[0][1]}

    # Loops -------------------------------------------------------------------------------------

    def _loop(self, one: Resolution, name: str) -> str:
        """Add the node that drives the loop of a step, if it needs one; return its name."""
        each = [wire for wire in one.wires if wire.each]
        if not each:
            return ""
        sources = {(wire.step, wire.path) for wire in each}
        if len(sources) > 1:
            told = ", ".join(repr(step) for step, _ in sorted(sources))
            raise PlanningError(
                f"{one.operation!r} takes one of each of several lists ({told}); "
                "it is not known which go together"
            )
        loop = f"{name}_each"
        items = self._path(replace(each[0], item=""))
        self.nodes[loop] = {
            "operation": EACH,
            "input": {"items": items, "state": f"$.{loop}", "result": f"$.{name}"},
            "loop": name,
        }
        return loop

    def _close(self, loop: str, name: str) -> None:
        """Let the loop go on from its last node, which is the call."""
        node = self.nodes[name]
        if isinstance(node, dict):
            node["route"] = loop

    # Values ------------------------------------------------------------------------------------

    def _value(self, wire: DataEdge, loop: str) -> str:
        if not wire.each:
            return self._path(wire)
        return f"$.{loop}.item{_member(wire.item)}" if wire.item else f"$.{loop}.item"

    def _path(self, wire: DataEdge) -> str:
        base = self.results[wire.step] + "".join(map(_member, wire.path))
        return f"{base}[*]{_member(wire.item)}" if wire.item else base

    def _fitting(self, wire: DataEdge, value: str, place: InputField | None, name: str) -> str:
        """Return the expression for a value as its place wants it, by a conversion if need be."""
        source = self.resolved[wire.step]
        if place is None or source.operation == ASK_USER or not place.types:
            return value
        known = gives(self.catalog.get(source.operation), wire)
        if source.wires and any(one.each for one in source.wires):
            known = frozenset(["array"])
        if not place.types <= _SCALARS or known & place.types:
            return value
        node = f"{name}_{re.sub(r'[^0-9A-Za-z_]', '_', place.name)}"
        schema: JsonObject = {key: place.schema[key] for key in _TOLD if key in place.schema}
        self.nodes[node] = {"operation": CONVERT, "input": {"value": value, "schema": schema}}
        return f"$.{node}"

    # The whole ---------------------------------------------------------------------------------

    def body(self, intents: Sequence[SubIntent]) -> JsonObject:
        """Return the plan, every node routed to the next."""
        order = [*self.nodes, END]
        routed: JsonObject = {START: {"route": order[0]}}
        for name, following in pairwise(order):
            node = self.nodes[name]
            if isinstance(node, dict):
                routed[name] = self._routed(node, name, following, order)
        answer = self._answer(intents)
        return {**routed, END: {"completed": True, "vars": {"answer": answer}}}

    def _routed(self, node: JsonObject, name: str, following: str, order: list[str]) -> JsonObject:
        looped = node.get("loop")
        if isinstance(looped, str):
            after = order[order.index(looped) + 1]
            done: JsonObject = {"condition": f"$.{name}.done", "node": after}
            rest = {key: value for key, value in node.items() if key != "loop"}
            return {**rest, "route": [done, following]}
        return {**node, "route": node.get("route", following)}

    def _answer(self, intents: Sequence[SubIntent]) -> Json:
        """Return what the plan answers with: what is put out, else what no other step uses."""
        outputs = [one for one in intents if one.kind == "output"]
        shown = [step for one in outputs for step in one.depends_on if step in self.results]
        used = {wire.step for one in self.resolved.values() for wire in one.wires}
        last = [
            one.id
            for one in intents
            if one.id in self.results and one.id not in used and one.kind != "user_input"
        ]
        steps = list(dict.fromkeys(shown)) or last or list(self.results)[-1:]
        if len(steps) == 1:
            return self._told(steps[0])
        return {step: self._told(step) for step in steps}

    def _told(self, step: str) -> str:
        """Return the result of a step as it is answered: without its envelope `data`."""
        one = self.resolved[step]
        output = self.catalog.get(one.operation).output_schema
        enveloped = "data" in as_object(output.get("properties"))
        looped = any(wire.each for wire in one.wires)
        return f"{self.results[step]}.data" if enveloped and not looped else self.results[step]


def _member(name: str) -> str:
    if _NAME.fullmatch(name):
        return f".{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


def _literal(text: str) -> Json:
    """Return a text of an input as a plan spells it: it is never read as an expression."""
    return f"${text}" if is_expression(text) else text
