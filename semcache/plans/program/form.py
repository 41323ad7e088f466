"""The form of a program: numbering, types, parameters, targets and operations."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from semcache.canonical import Json, Pointer, pointer_text
from semcache.catalog.catalog import Catalog
from semcache.plans.finding import PLACEHOLDER, Finding, finding, kind, near
from semcache.plans.program.analysis import ProgramAnalysis, texts
from semcache.plans.program.document import GENERATE, STRUCTURE, TARGETS, Instruction

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


def structure(analysis: ProgramAnalysis) -> Iterator[Finding]:
    """Yield what is wrong with the form of each instruction and its place among the others."""
    yield from misplaced(analysis.plan.data)
    yield from _numbering(analysis)
    for step, given in zip(analysis.steps, analysis.plan.steps, strict=True):
        yield from _step(step, given)
        yield from _target(step, analysis)
        yield from _operation(step, analysis.catalog)


def misplaced(data: Iterable[Pointer]) -> Iterator[Finding]:
    """Yield where a value of the prompt stands where the program itself is expected."""
    for at in sorted(data, key=pointer_text):
        if len(at) < 4 or at[2] != "parameters" or at[3] in STRUCTURE:
            what = "holds a value of the prompt where the program itself is expected"
            yield finding(at, f"{what}; assign the value to a variable")


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
        for at, text in texts(step.parameters, step.inside, analysis.bound):
            if PLACEHOLDER.search(text):
                yield finding(at, f"is {text[:80]!r}, to which no value was bound")
