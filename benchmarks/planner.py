"""Plan the calls of public function-calling questions with no language model, and score the plans.

    python benchmarks/planner.py STREAM.jsonl ... [--limit N] [--json OUT]
    python benchmarks/planner.py --speed 5000

A stream has one JSON object a line: `{"id", "scope", "text", "params": [{"name", "value", "text"}],
"plan": {...} | null}` (the head of `replay.py` says more). Its plans are the targets, a call each.

The catalog is built from the calls that the stream has, and from nothing else: one operation for
each name, its properties the arguments that were seen with it, each of the JSON type of its values,
required if every call of that name has it, and the effect `read` if the name begins with a verb
that reads (`find`, `get`), else `write`. No descriptions, no enums, no outputs. A name in the form
`Service.Method(arg,arg)` is `Service.Method`; one in the form of a sentence
(`email/Forward the last email about '{subject}' to {name}`) becomes `email.forward_the_last_…`,
with the sentence, its slots left out, as summary.

given     the caller gives the values by name, as a service with structured requests does
text      the prompt alone; a stream without enums says nothing of which words are values
own       the catalog holds the operations of the row's own scope
foreign   the catalog is another scope's, drawn by a fixed seed: what is planned counts as wrong
          (some of it does the same in another service: `Media_1.FindMovies`, `Media_2.FindMovies`)

planned   a plan came out
right     it calls the right operation with the right values (numbers by value, text without case)
wrong     it does not; refused are the rest: asked which one, asked for a value, or no plan
"""

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semcache.catalog.builtin import ask_user
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Effect, Operation
from semcache.catalog.shape import verb_and_noun
from semcache.errors import InvalidStream, PlanningError
from semcache.explore.score import plan_text, wilson_upper
from semcache.explore.streams import Row, read_stream
from semcache.planners.steps.builtin_resolver import BuiltinResolver
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.planners.steps.patterns import Patterns
from semcache.planners.steps.resolution import Resolver
from semcache.planners.steps.resolver import (
    Composite,
    WordResolver,
)
from semcache.planners.transforms import TRANSFORMS
from semcache.ports import Planned, PlanRequest
from semcache.prompts.vocabulary import READS

Plan = dict[str, Any]
_CALL = re.compile(r"([\w./-]+)\(")
_SLOT = re.compile(r"\{\w+\}")
_PLACEHOLDER = re.compile(r"\{\{params\.([^{}]+)\}\}")
_TYPES = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
SEED = 7


@dataclass(frozen=True)
class Target:
    """The call that a row should get."""

    operation: str
    summary: str
    args: Plan


def target(row: Row) -> Target:
    """Return the one call of the row's plan."""
    calls = [n for n in (row.plan or {}).values() if isinstance(n, dict) and "operation" in n]
    if len(calls) != 1:
        raise SystemExit(f"{row.id}: the plan has {len(calls)} calls; expected one")
    given: Any = calls[0]["input"]
    if not {"template", "args"} <= given.keys():
        return Target(str(calls[0]["operation"]), "", given)
    template = given["template"]
    if named := _CALL.match(template):
        return Target(named[1], "", given["args"])
    scope, sentence = template.split("/", 1) if "/" in template else ("", template)
    said = " ".join(_SLOT.sub(" ", sentence).split())
    name = "_".join(re.findall(r"\w+", said.lower()))
    return Target(f"{scope}.{name}" if scope else name, said, given["args"])


def catalogs(rows: Sequence[Row]) -> dict[str, Catalog]:
    """Return scope → the catalog of the calls that the rows of the scope have."""
    seen: dict[str, dict[str, list[Target]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.plan is not None:
            one = target(row)
            seen[row.scope][one.operation].append(one)
    return {
        scope: Catalog([operation(calls) for calls in by_name.values()]).with_builtins(
            [*TRANSFORMS, ask_user()]
        )
        for scope, by_name in sorted(seen.items())
    }


def operation(calls: Sequence[Target]) -> Operation:
    """Return the operation that calls of one name show."""
    properties: Plan = {}
    for one in calls:
        for name, value in one.args.items():
            properties.setdefault(name, {"type": _TYPES.get(type(value), "string")})
    required = set.intersection(*(set(one.args) for one in calls))
    schema: Plan = {
        "type": "object",
        "properties": properties,
        "required": sorted(required),
        "additionalProperties": False,
    }
    verb, _ = verb_and_noun(calls[0].operation)
    effect: Effect = "read" if verb in READS else "write"
    return Operation(calls[0].operation, calls[0].summary, schema, {}, effect)


def planner() -> ModularPlanner:
    """Return the modular planner with no language model, as `wiring` makes it."""
    resolvers: list[Resolver] = [BuiltinResolver(), WordResolver()]
    return ModularPlanner(Patterns(), Composite(resolvers), rounds=0)


@dataclass
class Score:
    """What came of the rows of one stream, asked in one way."""

    stream: str
    mode: str
    catalog: str
    rows: int = 0
    planned: int = 0
    right_operation: int = 0
    right: int = 0
    wrong: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    confused: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def to_json(self) -> Plan:
        """Return the score as JSON, shares and bounds included."""
        return {
            "stream": self.stream,
            "mode": self.mode,
            "catalog": self.catalog,
            "rows": self.rows,
            "planned": self.planned,
            "right_operation": self.right_operation,
            "right": self.right,
            "wrong": self.wrong,
            "wrong_share": self.wrong / self.planned if self.planned else 0.0,
            "wrong_upper": wilson_upper(self.wrong, self.planned) if self.planned else 1.0,
            "refused": dict(self.refused),
            "confused": dict(self.confused.most_common(10)),
            "median_ms": statistics.median(self.seconds) * 1000 if self.seconds else 0.0,
        }


def scored(name: str, rows: Sequence[Row], made: ModularPlanner, mode: str, which: str) -> Score:
    """Return how the planner does on the rows of a stream."""
    known = catalogs(rows)
    score = Score(name, mode, which)
    for row, catalog in chosen(rows, known, which):
        wanted = target(row)
        params = row.params if mode == "given" else ()
        score.rows += 1
        started = time.perf_counter()
        try:
            planned = made.plan(PlanRequest(row.text, None, catalog, params))
        except PlanningError as why:
            score.refused[cause(why)] += 1
            continue
        finally:
            score.seconds.append(time.perf_counter() - started)
        score.planned += 1
        operation_, args = called(planned)
        same = operation_ == wanted.operation and which == "own"
        right = same and plan_text(args) == plan_text(wanted.args)
        score.right_operation += same
        score.right += right
        score.wrong += not right
        if not right:
            score.confused[f"{wanted.operation} -> {operation_}"] += 1
    return score


def chosen(
    rows: Sequence[Row], known: dict[str, Catalog], which: str
) -> Iterator[tuple[Row, Catalog]]:
    """Yield each row that has a plan with the catalog that it is asked against."""
    draw = random.Random(SEED)  # noqa: S311 - a sample, not a secret
    for row in rows:
        if row.plan is None:
            continue
        others = [scope for scope in known if scope != row.scope]
        if which == "foreign" and not others:
            continue
        yield row, known[row.scope if which == "own" else draw.choice(others)]


CAUSES = {
    "the caller gives no values": "no pattern, and no values are given",
    "may begin a further step": "no pattern, and a further step or a condition",
    "cannot be taken apart": "no pattern",
    "is another value whenever": "a day that depends on when it is asked",
    "does not account for": "a word that nothing accounts for",
    "has no property for": "a value that nothing takes",
    "was said, and no step has it": "a value that no step has",
    "only": "unsure of an operation that writes",
}
"""What an error says → the cause, the first that fits; without any, no name is near the words."""


def cause(why: PlanningError) -> str:
    """Return in a few words why there is no plan."""
    questions = getattr(why, "questions", ())
    if questions:
        return "which" if str(questions[0]).startswith("Which") else "value"
    return next((told for said, told in CAUSES.items() if said in str(why)), "nothing near")


def called(planned: Planned) -> tuple[str, Plan]:
    """Return the operation that a plan calls, and its input with the values in it.

    Of a plan with several calls, all their names: that is never the right operation.
    """
    values = {one.name: one.value for one in planned.params}
    nodes = [n for n in planned.plan.to_dict().values() if isinstance(n, dict)]
    calls: list[Any] = [node for node in nodes if "operation" in node]
    if len(calls) != 1:
        return " + ".join(str(call["operation"]) for call in calls), {}
    return str(calls[0]["operation"]), filled(calls[0].get("input", {}), values)


def filled(value: Any, values: Plan) -> Any:  # noqa: ANN401 - any JSON
    """Return `value` with each placeholder replaced by what it stands for."""
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if isinstance(value, str) and (whole := _PLACEHOLDER.fullmatch(value)):
        return values[whole[1]]
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), value)
    return value


def table(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the lines of a table of the scores."""
    yield (
        "| stream | mode | catalog | planned | right op. | right | wrong / planned | ≤ (95 %) "
        "| which? | value? | no plan | median ms |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for one in scores:
        told = one.to_json()
        none = one.refused.total() - one.refused["which"] - one.refused["value"]
        yield (
            f"| {one.stream} | {one.mode} | {one.catalog} | {one.planned / one.rows:.3f} "
            f"| {one.right_operation / one.rows:.3f} | {one.right / one.rows:.3f} "
            f"| {one.wrong} / {one.planned} = {told['wrong_share']:.3f} "
            f"| {told['wrong_upper']:.3f} | {one.refused['which']} | {one.refused['value']} "
            f"| {none} | {told['median_ms']:.1f} |"
        )


# Speed ---------------------------------------------------------------------------------------

_NOUNS = (
    "order invoice issue ticket customer contract shipment payment branch lease policy claim asset "
    "device patient visit course grade album route fleet meter alarm badge batch"
).split()
_PARTS = [
    "",
    "_item",
    "_note",
    "_type",
    "_event",
    "_rule",
    "_report",
    "_group",
    "_label",
    "_status",
]
_VERBS = (
    "list get create update delete search export archive approve assign cancel notify merge split "
    "copy close open lock print audit"
).split()
_READS = {"list", "get", "search"}
GOALS = (
    "list open invoices and sort by region",
    "list tickets with limit 20 then count them",
    "list closed order items and filter by region west",
    "list shipments but ask me for the limit",
    "get patient 4711",
)


def large(size: int) -> Catalog:
    """Return a catalog of at most 5,000 operations that differ in one word from many others."""
    made = []
    for verb in _VERBS:
        for noun in (f"{noun}{part}" for noun in _NOUNS for part in _PARTS):
            properties: Plan = {
                f"{noun}_id": {"type": "string"},
                "limit": {"type": "integer"},
                "state": {"enum": ["open", "closed"]},
                "region": {"type": "string", "description": f"Region of the {noun}."},
            }
            schema: Plan = {
                "type": "object",
                "properties": properties,
                "required": [] if verb in {"list", "search"} else [f"{noun}_id"],
                "additionalProperties": False,
            }
            summary = f"{verb} the {noun.replace('_', ' ')}s of the company."
            effect = "read" if verb in _READS else "write"
            made.append(Operation(f"{verb}_{noun}s", summary, schema, {}, effect))
    random.Random(SEED).shuffle(made)  # noqa: S311 - an order, not a secret
    needed = [one for one in made if one.name.split("_", 1)[0] in _READS]
    rest = [one for one in made if one.name.split("_", 1)[0] not in _READS]
    return Catalog([*needed, *rest][:size]).with_builtins([*TRANSFORMS, ask_user()])


def speed(size: int) -> None:
    """Print the time of a plan over a large catalog, once the index over its words is built."""
    catalog = large(size)
    made = planner()
    print(f"{len(catalog)} operations, no model, no embedder; of 15 plans, in ms")
    print(f"{'median':>8} {'worst':>8} {'CPU':>8}")
    for goal in GOALS:
        request = PlanRequest(goal, None, catalog)
        operations = made.plan(request).plan.operations()
        taken, busy = [], []
        for _ in range(15):
            started, used = time.perf_counter(), time.process_time()
            made.plan(request)
            taken.append((time.perf_counter() - started) * 1000)
            busy.append((time.process_time() - used) * 1000)
        times = (statistics.median(taken), max(taken), statistics.median(busy))
        print(" ".join(f"{one:8.1f}" for one in times), f" {goal} -> {operations}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the streams, or measure the speed; print a table, and write JSON if asked."""
    parser = argparse.ArgumentParser(description="Plan public questions with no language model.")
    parser.add_argument("streams", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, help="rows of each stream")
    parser.add_argument("--json", type=Path, help="write the scores here")
    parser.add_argument("--speed", type=int, metavar="N", help="time plans over N operations")
    given = parser.parse_args(arguments)
    if given.speed:
        speed(given.speed)
        return 0
    scores = []
    made = planner()
    for path in given.streams:
        try:
            rows = read_stream(path, limit=given.limit)
        except InvalidStream as error:
            raise SystemExit(str(error)) from error
        scores += [
            scored(path.stem, rows, made, mode, which)
            for mode, which in (("given", "own"), ("given", "foreign"), ("text", "own"))
        ]
    print("\n".join(table(scores)))
    for one in scores:
        for pair, count in one.confused.most_common(5):
            print(f"  {one.stream} {one.mode} {one.catalog}: {count} x {pair}")
        told = ", ".join(f"{count} {why}" for why, count in one.refused.most_common())
        print(f"  {one.stream} {one.mode} {one.catalog} refused: {told}")
    if given.json:
        written = json.dumps([one.to_json() for one in scores], indent=1)
        given.json.write_text(written + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
