"""What can be wrong with a plan in the program format."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from types import MappingProxyType

from semcache.canonical import Json, JsonObject, Pointer, pointer_text
from semcache.catalog.catalog import Catalog
from semcache.plans.finding import Code, Finding
from semcache.plans.graph import backwards, never_before, reachable
from semcache.plans.inputs import PLACEHOLDER, breaches, kind, near
from semcache.plans.plan import ExecutionPlan
from semcache.plans.program import (
    GENERATE,
    GOALS,
    RETRIEVALS,
    STRUCTURE,
    TARGETS,
    Instruction,
    ProgramPlan,
    goal,
    is_program,
)
from semcache.plans.variables import Bound, Variable, variables

MAX_INSTRUCTIONS = 10_000  # a program with more is a mistake, and not worth the time of checking it
MAX_FINDINGS = 1_000  # of one program; looking for near names takes some 0.5 ms for each
DEFAULT_TOP_K = 5
"""How many results `vector_search` asks for if the program does not say, by the document."""

_QUERY = ("query", "vector_search")
_OUTPUT = ("output_var", "output_vars")
_REQUIRED: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType({
    "assign": (),
    "calling": (("tool_name",),),
    "jmp": (TARGETS[:1],),
    "jmp_if": (("condition_prompt",), TARGETS[1:2], TARGETS[2:]),
    "llm_generate": (("prompt",), _OUTPUT),
    "reasoning": (),
    "retrieve_knowledge_graph": (_QUERY, _OUTPUT),
    "vector_search": (_QUERY, _OUTPUT),
})  # fmt: skip
"""Type → the parameters that it must have, each with the names that it may have instead."""


def check_program(plan: ExecutionPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return all findings on a plan in the program format, by instruction in document order."""
    if not isinstance(plan, ProgramPlan):
        return ()
    if hopeless := _hopeless(plan):
        return hopeless
    look = _Look.at(plan, catalog)
    return _first(
        _structure(look), _flow(look), _unknown(look), _too_early(look), _inputs(look, look.steps)
    )


def check_program_values(plan: ExecutionPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return what the values bound to a plan have made wrong, if all was well with its template."""
    if not isinstance(plan, ProgramPlan) or _hopeless(plan):
        return ()
    look = _Look.at(plan, catalog)
    touched = {at[1] for at in plan.data if len(at) > 1}
    bound = [step for step in look.steps if step.index in touched]
    return _first(_misplaced(plan.data), _inputs(look, bound))


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
    look = _Look.at(plan, catalog, goals=goals, known=known)
    goalless = () if look.goal else (_no_goal(look.steps, goals),)
    return _first(goalless, _structure(look), _unbound(look), _unknown(look))


@dataclass(frozen=True, slots=True)
class _Look:
    """A program, prepared for being looked at."""

    plan: ProgramPlan
    catalog: Catalog | None
    steps: tuple[Instruction, ...]
    bound: Bound
    by_seq: Mapping[int, int]
    """`seq_no` → position of the first instruction that has it."""
    goal: str
    goals: Sequence[str]
    setters: Mapping[str, list[int]]
    """Variable → positions of the instructions that set it; -1 for set before the start."""

    @classmethod
    def at(
        cls,
        plan: ProgramPlan,
        catalog: Catalog | None,
        *,
        goals: Sequence[str] = GOALS,
        known: Iterable[str] = (),
    ) -> "_Look":
        steps = plan.instructions()
        setters: dict[str, list[int]] = {name: [-1] for name in known}
        for step in steps:
            for name in step.sets:
                setters.setdefault(name, []).append(step.index)
        by_seq = {step.seq: step.index for step in reversed(steps)}
        return cls(plan, catalog, steps, plan.bound, by_seq, goal(steps, goals), goals, setters)

    def variables(self, step: Instruction) -> Iterator[tuple[Pointer, Variable]]:
        for name in step.read:
            yield from variables(step.parameters[name], (*step.inside, name), self.bound)

    def edges(self) -> dict[str, tuple[str, ...]]:
        """Return where each position leads; past the end is the position after the last."""
        return {str(step.index): tuple(map(str, self._after(step))) for step in self.steps}

    def _after(self, step: Instruction) -> list[int]:
        if self.goal and self.goal in step.sets:
            return []
        if not step.targets:
            return [step.index + 1]
        seqs = [step.parameters.get(name) for name in step.targets]
        return [self.by_seq[seq] for seq in seqs if isinstance(seq, int) and seq in self.by_seq]


def _finding(at: Pointer, what: str, code: Code = "shape") -> Finding:
    return Finding(pointer_text(at), what, code)


def _first(*kinds: Iterable[Finding]) -> tuple[Finding, ...]:
    found = islice(chain.from_iterable(kinds), MAX_FINDINGS)
    return tuple(sorted(found, key=lambda finding: _position(finding.path)))


def _position(path: str) -> int:
    parts = path.split("/")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else -1


def _hopeless(plan: ProgramPlan) -> tuple[Finding, ...]:
    """Return the finding that makes all others pointless, if there is one."""
    count = len(plan.steps)
    if count > MAX_INSTRUCTIONS:
        what = f"has {count:,} instructions; expected at most {MAX_INSTRUCTIONS:,}"
        return (_finding((), what),)
    if not is_program(plan.body):
        what = "has no instructions; expected a list of objects with `seq_no`, `type`, `parameters`"
        return (_finding((), what),)
    return ()


# Structure ---------------------------------------------------------------------------------


def _structure(look: _Look) -> Iterator[Finding]:
    yield from _misplaced(look.plan.data)
    yield from _numbering(look)
    for step, given in zip(look.steps, look.plan.steps, strict=True):
        yield from _step(step, given)
        yield from _target(step, look)
        yield from _operation(step, look.catalog)


def _misplaced(data: Iterable[Pointer]) -> Iterator[Finding]:
    for at in sorted(data, key=pointer_text):
        if len(at) < 4 or at[2] != "parameters" or at[3] in STRUCTURE:
            what = "holds a value of the prompt where the program itself is expected"
            yield _finding(at, f"{what}; assign the value to a variable")


def _numbering(look: _Look) -> Iterator[Finding]:
    for step, given in zip(look.steps, look.plan.steps, strict=True):
        if step.seq < 0 and isinstance(given, dict):
            told = kind(given["seq_no"]) if "seq_no" in given else "missing"
            yield _finding((*step.at, "seq_no"), f"is {told}; expected a whole number from 0")
        elif step.seq >= 0 and look.by_seq[step.seq] != step.index:
            yield _finding((*step.at, "seq_no"), f"is {step.seq} a second time; expected its own")
    numbered = [step for step in look.steps if look.by_seq[step.seq] == step.index]
    if numbered and numbered[0].seq > 1:
        first = numbered[0]
        yield _finding((*first.at, "seq_no"), f"is {first.seq} for the first; expected 0 or 1")
    for before, step in pairwise(numbered):
        if -1 not in {before.seq, step.seq} and step.seq != before.seq + 1:
            what = f"is {step.seq} after {before.seq}; expected {before.seq + 1}, without a gap"
            yield _finding((*step.at, "seq_no"), what)


def _step(step: Instruction, given: Json) -> Iterator[Finding]:
    if not isinstance(given, dict):
        yield _finding(step.at, f"is {kind(given)}; expected an instruction, which is an object")
    elif step.type not in _REQUIRED:
        known = ", ".join(_REQUIRED)
        what = f"is {kind(given.get('type'))}{near(step.type, _REQUIRED)}; expected one of {known}"
        yield _finding((*step.at, "type"), what)
    elif not isinstance(given.get("parameters"), dict):
        what = f"is {kind(given.get('parameters'))}; expected an object"
        yield _finding(step.inside, what)
    else:
        yield from _parameters(step)


def _parameters(step: Instruction) -> Iterator[Finding]:
    yield from _missing(step)
    for name, value in step.parameters.items():
        expected = _EXPECTED.get(name) if not (step.pairs or step.type == "reasoning") else None
        if expected is not None and not expected[0](value):
            yield _finding((*step.inside, name), f"is {kind(value)}; expected {expected[1]}")


def _missing(step: Instruction) -> Iterator[Finding]:
    for names in _needs(step):
        if not any(name in step.parameters for name in names):
            told = " or ".join(map(repr, names))
            yield _finding(step.inside, f"has no {told}, which {step.type!r} needs")
    if step.pairs and not step.parameters:
        yield _finding(step.inside, "assigns nothing; expected a variable and its value")


def _needs(step: Instruction) -> tuple[tuple[str, ...], ...]:
    if step.type == "jmp" and step.conditional:
        return _REQUIRED["jmp_if"]
    if step.type == "assign" and not step.pairs:
        return (("value",),)
    return _REQUIRED[step.type]


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_names(value: Json) -> bool:
    if not isinstance(value, list) or not all(map(_is_name, value)):
        return False
    return len(set(map(str, value))) == len(value)


def _is_seq(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_EXPECTED: Mapping[str, tuple[Callable[[Json], bool], str]] = MappingProxyType({
    **dict.fromkeys(TARGETS, (_is_seq, "the `seq_no` of an instruction")),
    "output_var": (_is_name, "the name of a variable"),
    "output_vars": (_are_names, "a list of different names of variables"),
    "tool_name": (_is_name, "the name of an operation"),
    "tool_params": (lambda value: isinstance(value, dict), "an object"),
    "var_name": (_is_name, "the name of a variable"),
})  # fmt: skip
"""Parameter → what it must be, where it is not a value."""


def _target(step: Instruction, look: _Look) -> Iterator[Finding]:
    for name in step.targets:
        seq = step.parameters.get(name)
        if _is_seq(seq) and (seq not in look.by_seq or seq == -1):
            first, last = min(look.by_seq), max(look.by_seq)
            what = f"is {seq}, the `seq_no` of no instruction; they go from {first} to {last}"
            yield _finding((*step.inside, name), what, "target")


def _operation(step: Instruction, catalog: Catalog | None) -> Iterator[Finding]:
    if catalog is None or step.call in {"", GENERATE} or step.call in catalog:
        return
    at = (*step.inside, "tool_name") if step.type == "calling" else (*step.at, "type")
    yield _finding(at, catalog.unknown(step.call), "operation")


def _unbound(look: _Look) -> Iterator[Finding]:
    for step in look.steps:
        for at, text in _texts(step.parameters, step.inside, look.bound):
            if PLACEHOLDER.search(text):
                yield _finding(at, f"is {text[:80]!r}, to which no value was bound")


def _texts(value: Json, at: Pointer, bound: Bound) -> Iterator[tuple[Pointer, str]]:
    """Yield the program's own texts in `value`, with a gap where a value of the prompt stands."""
    if at in bound.whole:
        return
    if isinstance(value, str):
        for start, end in reversed(bound.spans.get(at, ())):
            value = value[:start] + "\0" + value[end:]
        yield at, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, (*at, key), bound)


# Flow --------------------------------------------------------------------------------------


def _flow(look: _Look) -> Iterator[Finding]:
    """Yield what never gets its turn, what has its turn for ever, and ways past the end."""
    if not look.goal:
        yield _no_goal(look.steps, look.goals)
    edges = look.edges()
    reached = reachable(edges, ["0"])
    for step in look.steps:
        if str(step.index) not in reached:
            what = "is unreachable from the first instruction; jump to it or remove it"
            yield _finding(step.at, what, "unreachable")
    yield from _past_the_end(look, edges, reached)
    yield from _endless(look, edges, reached)


def _no_goal(steps: Sequence[Instruction], goals: Sequence[str]) -> Finding:
    told = " nor ".join(map(repr, goals))
    what = f"sets neither {told}" if len(goals) > 1 else f"never sets {told}"
    return _finding(steps[-1].at[:1], f"{what}, so that there is no final answer; assign it last")


def _past_the_end(
    look: _Look, edges: Mapping[str, Sequence[str]], reached: set[str]
) -> Iterator[Finding]:
    last = look.steps[-1]
    end = str(len(look.steps))
    if look.goal and str(last.index) in reached and end in edges[str(last.index)]:
        what = f"is the last instruction and sets no {look.goal!r}; expected the final answer"
        yield _finding(last.at, what, "target")


def _endless(
    look: _Look, edges: Mapping[str, Sequence[str]], reached: set[str]
) -> Iterator[Finding]:
    # A jump to nowhere has its own finding, so that it counts as an end here.
    exits = [str(s.index) for s in look.steps if len(edges[str(s.index)]) < max(1, len(s.targets))]
    saved = reachable(backwards(edges), [*exits, str(len(look.steps))])
    stuck = [s for s in look.steps if str(s.index) in reached and str(s.index) not in saved]
    if stuck:
        among = ", ".join(str(s.seq) for s in stuck[:5]) + ("…" if len(stuck) > 5 else "")
        what = f"leads to no end; these only lead to one another: {among}"
        yield _finding(stuck[0].at, what, "endless")


# Variables ---------------------------------------------------------------------------------


def _unknown(look: _Look) -> Iterator[Finding]:
    for step in look.steps:
        for at, variable in look.variables(step):
            if variable.name not in look.setters:
                what = f"reads {variable.name!r}, which nothing sets"
                yield _finding(at, what + near(variable.name, look.setters), "reference")


def _too_early(look: _Look) -> Iterator[Finding]:
    """Yield the references to variables that cannot have been set by then."""
    edges: dict[str, Sequence[str]] = {**look.edges()}
    reached = reachable(edges, ["0"])
    reads: list[tuple[int, Pointer, str]] = []
    for step in look.steps:
        if str(step.index) in reached:
            found = look.variables(step)
            reads += [(step.index, at, v.name) for at, v in found if v.name in look.setters]
    readers: dict[str, set[str]] = {}
    for index, _, name in reads:
        # One walk a variable, from wherever it is set: a walk for each pair may take for ever.
        readers.setdefault(f"={name}", set()).add(str(index))
    for variable in readers:
        after = (edges[str(setter)] for setter in look.setters[variable[1:]])
        edges[variable] = tuple(dict.fromkeys(chain.from_iterable(after)))
    impossible = set(never_before(edges, readers))
    for index, at, name in reads:
        if (f"={name}", str(index)) in impossible:
            yield _finding(at, f"reads {name!r}, which cannot have been set by then", "reference")


# Inputs ------------------------------------------------------------------------------------


def _inputs(look: _Look, steps: Iterable[Instruction]) -> Iterator[Finding]:
    """Yield the literal inputs that break the schema of their operation."""
    if look.catalog is None:
        return
    for step in steps:
        if step.call != GENERATE and step.call in look.catalog:
            places = {name: (*step.inside, *way) for name, way in step.inputs}
            raw = {name: _at(step.parameters, way) for name, way in step.inputs}
            given = fitted(step.call, raw, look.catalog)
            holder = (*step.inside, "tool_params") if step.type == "calling" else step.inside
            unknown = [at for name in given for at in _moving(raw, name, places, look.bound)]
            yield from breaches(
                given, holder, unknown=unknown, catalog=look.catalog, operation=step.call
            )


def _at(value: JsonObject, way: Sequence[str]) -> Json:
    found: Json = value
    for name in way:
        found = found[name] if isinstance(found, dict) else None
    return found


def _moving(
    raw: JsonObject, name: str, places: Mapping[str, Pointer], bound: Bound
) -> Iterator[Pointer]:
    """Yield where in the input `name` values stand that are known only when the program runs."""
    if name not in raw:
        return
    start = places[name]
    for at, _ in variables(raw[name], start, bound):
        yield (name, *at[len(start) :])
    for at, text in _texts(raw[name], start, bound):
        if PLACEHOLDER.search(text):
            yield (name, *at[len(start) :])


def fitted(operation: str, given: JsonObject, catalog: Catalog) -> JsonObject:
    """Return the input of a call as the operation takes it.

    `top_k` of a retrieval is left out for an operation whose schema does not know it, and is 5
    for a `vector_search` that does not say; nothing else is dropped or added.
    """
    properties = catalog.get(operation).input_schema.get("properties")
    takes = "top_k" in properties if isinstance(properties, dict) else True
    if operation not in RETRIEVALS:
        return given
    if not takes:
        return {name: value for name, value in given.items() if name != "top_k"}
    default: JsonObject = {"top_k": DEFAULT_TOP_K} if operation == "vector_search" else {}
    return default | given
