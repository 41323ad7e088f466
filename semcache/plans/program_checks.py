"""What can be wrong with a plan in the program format: its form, its flow and its inputs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from semcache.canonical import JsonObject, Pointer
from semcache.catalog.catalog import Catalog
from semcache.plans.finding import (
    PLACEHOLDER,
    Finding,
    breaches,
    endless,
    finding,
    listed,
    near,
    never_before,
    reachable,
    too_many,
)
from semcache.plans.program import (
    GENERATE,
    GOALS,
    RETRIEVALS,
    Bound,
    Instruction,
    ProgramPlan,
    found,
    is_program,
    variables,
)
from semcache.plans.program_form import (
    ProgramAnalysis,
    misplaced_in_program,
    own_texts,
    structure,
    unbound,
)

MAX_INSTRUCTIONS = 10_000  # a program with more is a mistake, and not worth the time of checking it
MAX_FINDINGS = 1_000  # of one program; looking for near names takes some 0.5 ms for each


def check_program(plan: ProgramPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return all findings on a plan in the program format, by instruction in document order."""
    if hopeless := _hopeless(plan):
        return hopeless
    analysis = ProgramAnalysis.at(plan, catalog)
    return _first(
        structure(analysis),
        flow(analysis),
        unknown(analysis),
        too_early(analysis),
        inputs(analysis, analysis.steps),
    )


def check_program_values(plan: ProgramPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return what the values bound to a plan have made wrong, if all was well with its template."""
    if _hopeless(plan):
        return ()
    analysis = ProgramAnalysis.at(plan, catalog)
    touched = {at[1] for at in plan.data if len(at) > 1}
    bound = [step for step in analysis.steps if step.index in touched]
    return _first(misplaced_in_program(plan.data), inputs(analysis, bound))


def broken_program(
    plan: ProgramPlan,
    catalog: Catalog,
    *,
    goals: Sequence[str] = GOALS,
    known: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Return what keeps an engine from starting.

    That is bad form, missing targets, operations that the catalog lacks, variables that nothing
    sets (`known` are set before the start), placeholders that no value was bound to, and no final
    answer. Instructions that are never reached are no reason.
    """
    if hopeless := _hopeless(plan):
        return hopeless
    analysis = ProgramAnalysis.at(plan, catalog, goals=goals, known=known)
    goalless = () if analysis.goal else (no_goal(analysis.steps, goals),)
    return _first(goalless, structure(analysis), unbound(analysis), unknown(analysis))


def _first(*kinds: Iterable[Finding]) -> tuple[Finding, ...]:
    found = islice(chain.from_iterable(kinds), MAX_FINDINGS)
    return tuple(sorted(found, key=lambda finding: _position(finding.path)))


def _position(path: str) -> int:
    parts = path.split("/")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else -1


def _hopeless(plan: ProgramPlan) -> tuple[Finding, ...]:
    """Return the finding that makes all others pointless, if there is one."""
    if found := too_many(len(plan.steps), "instructions", most=MAX_INSTRUCTIONS):
        return found
    if not is_program(plan.body):
        what = "has no instructions; expected a list of objects with `seq_no`, `type`, `parameters`"
        return (finding((), what),)
    return ()


# Its flow: what has its turn, what never does, and what is set by then.


def flow(analysis: ProgramAnalysis) -> Iterator[Finding]:
    """Yield what never gets its turn, what has its turn for ever, and ways past the end."""
    if not analysis.goal:
        yield no_goal(analysis.steps, analysis.goals)
    edges = analysis.edges()
    reached = reachable(edges, ["0"])
    for step in analysis.steps:
        if str(step.index) not in reached:
            what = "is unreachable from the first instruction; jump to it or remove it"
            yield finding(step.at, what, "unreachable")
    yield from _past_the_end(analysis, edges, reached)
    yield from _endless(analysis, edges, reached)


def no_goal(steps: Sequence[Instruction], goals: Sequence[str]) -> Finding:
    """Return the finding that nothing sets a final answer."""
    told = " nor ".join(map(repr, goals))
    what = f"sets neither {told}" if len(goals) > 1 else f"never sets {told}"
    return finding(steps[-1].at[:1], f"{what}, so that there is no final answer; assign it last")


def _past_the_end(
    analysis: ProgramAnalysis, edges: Mapping[str, Sequence[str]], reached: set[str]
) -> Iterator[Finding]:
    last = analysis.steps[-1]
    end = str(len(analysis.steps))
    if analysis.goal and str(last.index) in reached and end in edges[str(last.index)]:
        what = f"is the last instruction and sets no {analysis.goal!r}; expected the final answer"
        yield finding(last.at, what, "target")


def _endless(
    analysis: ProgramAnalysis, edges: Mapping[str, Sequence[str]], reached: set[str]
) -> Iterator[Finding]:
    # A jump to nowhere has its own finding, so that it counts as an end here.
    exits = [
        str(s.index) for s in analysis.steps if len(edges[str(s.index)]) < max(1, len(s.targets))
    ]
    names = endless(edges, reached, [*exits, str(len(analysis.steps))])
    if names:
        stuck = [analysis.steps[int(name)] for name in names]
        among = listed([str(step.seq) for step in stuck])
        what = f"leads to no end; these only lead to one another: {among}"
        yield finding(stuck[0].at, what, "endless")


def unknown(analysis: ProgramAnalysis) -> Iterator[Finding]:
    """Yield the references to variables that nothing sets."""
    for step in analysis.steps:
        for at, variable in step.variables(analysis.bound):
            if variable.name not in analysis.setters:
                what = f"reads {variable.name!r}, which nothing sets"
                yield finding(at, what + near(variable.name, analysis.setters), "reference")


def too_early(analysis: ProgramAnalysis) -> Iterator[Finding]:
    """Yield the references to variables that cannot have been set by then."""
    edges: dict[str, Sequence[str]] = {**analysis.edges()}
    reached = reachable(edges, ["0"])
    reads: list[tuple[int, Pointer, str]] = []
    for step in analysis.steps:
        if str(step.index) in reached:
            found = step.variables(analysis.bound)
            reads += [(step.index, at, v.name) for at, v in found if v.name in analysis.setters]
    readers: dict[str, set[str]] = {}
    for index, _, name in reads:
        # One walk a variable, from wherever it is set: a walk for each pair may take for ever.
        readers.setdefault(f"={name}", set()).add(str(index))
    for variable in readers:
        after = (edges[str(setter)] for setter in analysis.setters[variable[1:]])
        edges[variable] = tuple(dict.fromkeys(chain.from_iterable(after)))
    impossible = set(never_before(edges, readers))
    for index, at, name in reads:
        if (f"={name}", str(index)) in impossible:
            yield finding(at, f"reads {name!r}, which cannot have been set by then", "reference")


# Its inputs: literal values against the schemas of their operations.

DEFAULT_TOP_K = 5
"""How many results `vector_search` asks for if the program does not say, by the document."""


def inputs(analysis: ProgramAnalysis, steps: Iterable[Instruction]) -> Iterator[Finding]:
    """Yield the literal inputs that break the schema of their operation."""
    if analysis.catalog is None:
        return
    for step in steps:
        if step.call != GENERATE and step.call in analysis.catalog:
            places = {name: (*step.inside, *way) for name, way in step.inputs}
            raw = {name: found(step.parameters, way) for name, way in step.inputs}
            given = fitted(step.call, raw, analysis.catalog)
            holder = (*step.inside, "tool_params") if step.type == "calling" else step.inside
            unknown = [at for name in given for at in _moving(raw, name, places, analysis.bound)]
            yield from breaches(
                given, holder, unknown=unknown, catalog=analysis.catalog, operation=step.call
            )


def _moving(
    raw: JsonObject, name: str, places: Mapping[str, Pointer], bound: Bound
) -> Iterator[Pointer]:
    """Yield where in the input `name` values stand that are known only when the program runs."""
    if name not in raw:
        return
    start = places[name]
    for at, _ in variables(raw[name], start, bound):
        yield (name, *at[len(start) :])
    for at, text in own_texts(raw[name], start, bound):
        if PLACEHOLDER.search(text):
            yield (name, *at[len(start) :])


def fitted(operation: str, given: JsonObject, catalog: Catalog) -> JsonObject:
    """Return the input of a call as the operation takes it.

    `top_k` of a retrieval is left out for an operation whose schema does not know it, and is 5
    for a `vector_search` that does not say; nothing else is dropped or added.
    """
    if operation not in RETRIEVALS:
        return given
    properties = catalog.get(operation).input_schema.get("properties")
    if isinstance(properties, dict) and "top_k" not in properties:
        return {name: value for name, value in given.items() if name != "top_k"}
    default: JsonObject = {"top_k": DEFAULT_TOP_K} if operation == "vector_search" else {}
    return default | given
