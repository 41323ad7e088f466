"""`semcache plan`: plans in files, their checkpoints, and the steps that planning stops at."""

import argparse
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, as_object, loads, plain
from semcache.catalog.catalog import Catalog
from semcache.commands import SUMMARIES
from semcache.commands.options import (
    add_command,
    add_common,
    add_model,
    add_planning,
    add_sources,
    catalog_of,
    names_a_source,
    opened,
    place_of,
    semcache_of,
)
from semcache.commands.output import WRONG, print_json
from semcache.errors import InvalidInput, InvalidPlan
from semcache.files import unreadable
from semcache.planners.intent_graph import IntentGraph
from semcache.plans.codec import FORMATS, adopt, check, decode, refuse
from semcache.plans.document import DocumentPlan, ExecutionPlan
from semcache.plans.finding import Finding
from semcache.prompts.parameter import by_name
from semcache.semcache import SemCache
from semcache.stores.disk.directory import existing

if TYPE_CHECKING:
    from semcache.commands.options import Commands


EXPECTED = "a plan as JSON: routes, tasks or a program"


def add(commands: "Commands") -> None:
    """Add the commands about a plan in a file."""
    summary = SUMMARIES["plan"]
    plans = commands.add_parser("plan", help=summary, description=summary).add_subparsers(
        required=True, metavar="COMMAND"
    )
    summary = "Tell everything that is wrong with a plan; of its operations, if a source is named."
    checks = add_command(plans, "check", _plan_check, summary)
    runs = add_command(plans, "run", _plan_run, "Run a plan.")
    # Without a directory: running a plan caches nothing.
    runs.set_defaults(directory=None, database=None, threshold=None)
    summary = "List where the program of a run stood after each step."
    stood = add_command(plans, "checkpoints", _checkpoints, summary)
    stood.add_argument("of", metavar="RUN", help="id of the run, as `semcache ask --json` tells it")
    add_common(stood)
    apart = add_command(plans, "steps", _steps, "Take a prompt apart into steps, and stop there.")
    apart.add_argument("text", help="the prompt, in one argument")
    summary = "Make and keep the plan of the steps that `plan steps --json` printed."
    goes_on = add_command(plans, "resume", _resume, summary)
    goes_on.add_argument("steps", type=Path, metavar="FILE", help="the steps, as JSON")
    for options in (apart, goes_on):
        add_common(options)
        add_planning(options)
    for options in (checks, runs):
        options.add_argument("file", type=Path, help="the plan, as JSON")
        options.add_argument("--json", action="store_true", help="print JSON")
        add_sources(options)
    runs.add_argument(
        "--params", default="{}", metavar="JSON", help="values of the plan's {{params.x}}"
    )
    add_model(runs)


def _plan_check(options: argparse.Namespace) -> int:
    plan = _plan(options)
    with ExitStack() as stack:
        catalog = catalog_of(options, stack) if names_a_source(options) else None
        findings = _findings(plan, catalog)
    if options.json:
        listed: list[Json] = [plain(asdict(finding)) for finding in findings]
        print_json(
            {"format": plan.format, "operations": list(plan.operations()), "findings": listed}
        )
    elif findings:
        print("\n".join(map(str, findings)))
    else:
        print(f"ok: {plan.format}, calls {', '.join(plan.operations()) or 'nothing'}")
    return WRONG if findings else 0


def _plan_run(options: argparse.Namespace) -> int:
    given = loads(options.params, what="--params")
    if not isinstance(given, dict):
        raise InvalidInput(f"--params is of type {type(given).__name__}; expected a JSON object")
    with ExitStack() as stack:
        catalog = catalog_of(options, stack)
        template = generalize(
            _plan(options).to_dict(), by_name(given), schemas=catalog.input_schemas
        )
        bound = bind(template, given)
        plan = adopt(bound.plan, bound.data)
        refuse(_findings(plan, catalog))
        outcome = stack.enter_context(opened(options, catalog)).execute(plan)
    if options.json:
        print_json({"value": outcome.value, "text": outcome.text})
    else:
        print(outcome.text)
    return 0


def _checkpoints(options: argparse.Namespace) -> int:
    existing(options.directory)
    with SemCache.open(settings=place_of(options), catalog=Catalog()) as semcache:
        states = semcache.checkpoints(options.of, tenant=options.tenant)
    if not states:
        raise InvalidInput(
            f"no checkpoints of the run {options.of!r} of tenant {options.tenant!r}: it ran no "
            "program, or more than seven days ago"
        )
    if options.json:
        print_json({"run": options.of, "checkpoints": [state.to_json() for state in states]})
        return 0
    for number, state in enumerate(states):
        told = state.error or ", ".join(state.variables)
        after = "start" if state.executed is None else state.executed
        following = "end" if state.following is None else state.following
        print(f"{number:3}  after {after}  next {following}  {told}")
    return 0


def _steps(options: argparse.Namespace) -> int:
    with semcache_of(options) as semcache:
        graph = semcache.decompose(options.text, tenant=options.tenant)
    if options.json:
        print_json(graph.to_json())
    else:
        print(graph)
    return 0


def _resume(options: argparse.Namespace) -> int:
    file: Path = options.steps
    told = loads(_text(file, "steps as `semcache plan steps --json` prints them"), what=str(file))
    try:
        graph = IntentGraph.from_json(as_object(told))
    except InvalidInput as error:
        raise InvalidInput(f"{str(file)!r}: {error}") from error
    with semcache_of(options) as semcache:
        planned = semcache.resume_planning(graph, tenant=options.tenant)
        kept = semcache.store(graph.goal.goal, planned, tenant=options.tenant)
    if options.json:
        print_json({"plan": planned.plan.to_dict(), "kept": bool(kept)})
        return 0
    print(f"{planned.plan.format}, calls {', '.join(planned.plan.operations()) or 'nothing'}")
    print(f"Kept for {graph.goal.goal!r}" if kept else f"Not kept: {kept.reason}")
    return 0


def _text(file: Path, expected: str) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPlan(unreadable(file, error, expected=expected)) from error


def _plan(options: argparse.Namespace) -> ExecutionPlan:
    file: Path = options.file
    text = _text(file, EXPECTED)
    try:
        return decode(text)
    except InvalidPlan as error:
        raise InvalidPlan(f"{str(file)!r} holds no plan: {error}; expected {EXPECTED}") from error


def _findings(plan: ExecutionPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    if plan.format == DocumentPlan.format:
        formats = ", ".join(known.name for known in FORMATS)
        what = f"no format that is known; expected the keys of one of: {formats}"
        return (Finding("", what, "shape"),)
    return check(plan, catalog)
