"""The form of a program: its instructions prepared for every check, and what is malformed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from semcache.canonical import Json, Pointer
from semcache.catalog.catalog import Catalog
from semcache.plans.document import texts
from semcache.plans.finding import (
    PLACEHOLDER,
    Finding,
    finding,
    kind,
    misplaced,
    near,
)
from semcache.plans.program import (
    GENERATE,
    GOALS,
    QUERY,
    STRUCTURE,
    TARGETS,
    Bound,
    Instruction,
    ProgramPlan,
    goal,
)


@dataclass(frozen=True, slots=True)
class ProgramAnalysis:
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
    ) -> "ProgramAnalysis":
        """Return `plan` prepared; variables in `known` are set before the start."""
        steps = plan.instructions()
        setters: dict[str, list[int]] = {name: [-1] for name in known}
        for step in steps:
            for name in step.sets:
                setters.setdefault(name, []).append(step.index)
        by_seq = {step.seq: step.index for step in reversed(steps)}
        return cls(plan, catalog, steps, plan.bound, by_seq, goal(steps, goals), goals, setters)

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


def own_texts(value: Json, at: Pointer, bound: Bound) -> Iterator[tuple[Pointer, str]]:
    """Yield the program's own texts in `value`, with a gap where a value of the prompt stands."""
    for place, text in texts(value, at, bound.whole):
        for start, end in reversed(bound.spans.get(place, ())):
            text = text[:start] + "\0" + text[end:]  # noqa: PLW2901 - from its end on
        yield place, text


# Its form: numbering, types, parameters, targets and operations.

_OUTPUT = ("output_var", "output_vars")
_REQUIRED: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType({
    "assign": (),
    "calling": (("tool_name",),),
    "jmp": (TARGETS[:1],),
    "jmp_if": (("condition_prompt",), TARGETS[1:2], TARGETS[2:]),
    "llm_generate": (("prompt",), _OUTPUT),
    "reasoning": (),
    "retrieve_knowledge_graph": (QUERY, _OUTPUT),
    "vector_search": (QUERY, _OUTPUT),
})  # fmt: skip
"""Type → the parameters that it must have, each with the names that it may have instead."""


def structure(analysis: ProgramAnalysis) -> Iterator[Finding]:
    """Yield what is wrong with the form of each instruction and its place among the others."""
    yield from misplaced_in_program(analysis.plan.data)
    yield from _numbering(analysis)
    for step, given in zip(analysis.steps, analysis.plan.steps, strict=True):
        yield from _step(step, given)
        yield from _target(step, analysis)
        yield from _operation(step, analysis.catalog)


def misplaced_in_program(data: Iterable[Pointer]) -> Iterator[Finding]:
    """Yield where a value of the prompt stands in the structure of a program."""
    return misplaced(data, _is_structure, "assign the value to a variable", of="program")


def _is_structure(at: Pointer) -> bool:
    return len(at) < 4 or at[2] != "parameters" or at[3] in STRUCTURE


def _numbering(analysis: ProgramAnalysis) -> Iterator[Finding]:
    for step, given in zip(analysis.steps, analysis.plan.steps, strict=True):
        if step.seq < 0 and isinstance(given, dict):
            told = kind(given["seq_no"]) if "seq_no" in given else "missing"
            yield finding((*step.at, "seq_no"), f"is {told}; expected a whole number from 0")
        elif step.seq >= 0 and analysis.by_seq[step.seq] != step.index:
            yield finding((*step.at, "seq_no"), f"is {step.seq} a second time; expected its own")
    numbered = [step for step in analysis.steps if analysis.by_seq[step.seq] == step.index]
    if numbered and numbered[0].seq > 1:
        first = numbered[0]
        yield finding((*first.at, "seq_no"), f"is {first.seq} for the first; expected 0 or 1")
    for before, step in pairwise(numbered):
        if -1 not in {before.seq, step.seq} and step.seq != before.seq + 1:
            what = f"is {step.seq} after {before.seq}; expected {before.seq + 1}, without a gap"
            yield finding((*step.at, "seq_no"), what)


def _step(step: Instruction, given: Json) -> Iterator[Finding]:
    if not isinstance(given, dict):
        yield finding(step.at, f"is {kind(given)}; expected an instruction, which is an object")
    elif step.type not in _REQUIRED:
        known = ", ".join(_REQUIRED)
        what = f"is {kind(given.get('type'))}{near(step.type, _REQUIRED)}; expected one of {known}"
        yield finding((*step.at, "type"), what)
    elif not isinstance(given.get("parameters"), dict):
        what = f"is {kind(given.get('parameters'))}; expected an object"
        yield finding(step.inside, what)
    else:
        yield from _parameters(step)


def _parameters(step: Instruction) -> Iterator[Finding]:
    yield from _missing(step)
    for name, value in step.parameters.items():
        expected = _EXPECTED.get(name) if not (step.pairs or step.type == "reasoning") else None
        if expected is not None and not expected[0](value):
            yield finding((*step.inside, name), f"is {kind(value)}; expected {expected[1]}")


def _missing(step: Instruction) -> Iterator[Finding]:
    for names in _needs(step):
        if not any(name in step.parameters for name in names):
            told = " or ".join(map(repr, names))
            yield finding(step.inside, f"has no {told}, which {step.type!r} needs")
    if step.pairs and not step.parameters:
        yield finding(step.inside, "assigns nothing; expected a variable and its value")


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


def _target(step: Instruction, analysis: ProgramAnalysis) -> Iterator[Finding]:
    for name in step.targets:
        seq = step.parameters.get(name)
        if _is_seq(seq) and (seq not in analysis.by_seq or seq == -1):
            first, last = min(analysis.by_seq), max(analysis.by_seq)
            what = f"is {seq}, the `seq_no` of no instruction; they go from {first} to {last}"
            yield finding((*step.inside, name), what, "target")


def _operation(step: Instruction, catalog: Catalog | None) -> Iterator[Finding]:
    if catalog is None or step.call in {"", GENERATE} or step.call in catalog:
        return
    at = (*step.inside, "tool_name") if step.type == "calling" else (*step.at, "type")
    yield finding(at, catalog.unknown(step.call), "operation")


def unbound(analysis: ProgramAnalysis) -> Iterator[Finding]:
    """Yield the placeholders to which no value was bound."""
    for step in analysis.steps:
        for at, text in own_texts(step.parameters, step.inside, analysis.bound):
            if PLACEHOLDER.search(text):
                yield finding(at, f"is {text[:80]!r}, to which no value was bound")
