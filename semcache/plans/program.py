"""The program format: numbered instructions that run one after the other, with jumps.

    {"instructions": [{"seq_no": 0, "type": "<type>", "parameters": {…}}, …]}

The list may also stand under `plan`, and a bare list is taken for such an object. Types, with the
parameters of both dialects:

    reasoning                 anything; never executed
    assign                    value, var_name; or any number of `variable: value`
    llm_generate              prompt, context?, output_var
    retrieve_knowledge_graph  query (or vector_search), top_k?, output_var
    vector_search             query (or vector_search), top_k?, output_var
    calling                   tool_name, tool_params?, output_vars?
    jmp_if                    condition_prompt, context?, jump_if_true, jump_if_false
    jmp                       target_seq; or those of jmp_if

`output_var` (one name) and `output_vars` (a list of names) mean the same everywhere. How variables
are read is said at `REFERENCE`. The run ends when `final_answer` is set, or `result` in a program
that sets no `final_answer`. `llm_generate` asks the engine's model, also as a `tool_name`; every
other tool, and the two retrievals, are operations of the catalog.
Format: StackVM, by its document (first dialect) and its later versions (second).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from semcache.canonical import Json, JsonObject, Pointer, as_list, as_object, value_at
from semcache.plans.document import Reference, WrittenPlan, read_object, read_value

# Variables: `{{name}}` and `${name.field}` in texts, `{"var": "name"}`.
#
# Both dialects are read in every program. A reference in a text gives text, except that a text
# which is one `${name}` and nothing else gives the value with its type, as `{"var": "name"}` does.
# `{{params.x}}` is a placeholder of binding and no reference. There is no escape: a text that must
# hold a literal `{{x}}`, where the program has an `x`, is handed over as a parameter.

REFERENCE = re.compile(
    r"\{\{\s*(?!params\s*\.)(?P<braced>[^\W\d]\w*(?:\.\w+)*)\s*\}\}"
    r"|\$\{\s*(?P<dollar>[^\W\d]\w*(?:\.\w+)*)\s*\}"
)
"""A reference inside a text."""

Span = tuple[int, int]
"""Characters of a text, from and to (exclusive)."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A reference to a variable."""

    name: str
    path: tuple[str, ...]
    """Fields below it, from the outside in."""
    written: str
    """As it stands in the plan."""
    typed: bool
    """Whether it gives the value itself where it stands alone; else the value as text."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where values were bound in a program: what stands there is never read as a reference."""

    whole: frozenset[Pointer]
    """Places that are data, with all below them."""
    spans: Mapping[Pointer, tuple[Span, ...]]
    """Texts that hold data, and where in them."""

    @classmethod
    def of(cls, body: JsonObject, data: frozenset[Pointer]) -> "Bound":
        """Return what `data` says of `body`.

        A pointer that goes on below a text with two numbers means those characters of it.
        """
        spans: dict[Pointer, list[Span]] = {}
        whole = set(data)
        for at in data:
            span = _span(body, at)
            if span is not None:
                whole.remove(at)
                spans.setdefault(at[:-2], []).append(span)
        return cls(frozenset(whole), {at: tuple(sorted(found)) for at, found in spans.items()})


def _span(body: JsonObject, at: Pointer) -> Span | None:
    match at[-2:]:
        case (int(start), int(end)) if isinstance(found(body, at[:-2]), str):
            return start, end
        case _:
            return None


def found(value: Json, at: Pointer) -> Json:
    """Return what stands at `at` in `value`; None if nothing does."""
    try:
        return value_at(value, at)
    except LookupError:
        return None


def pieces(text: str, spans: tuple[Span, ...] = ()) -> tuple[str | Variable, ...]:
    """Return `text` as plain text and references by turns; none begins, ends or lies in a span."""
    if "{" not in text:
        return (text,) if text else ()
    parts: list[str | Variable] = []
    place = 0
    for start, end in spans:
        # Each stretch is read by itself, so that a value cannot complete what stands around it.
        _read(text[place:start], parts)
        if end > start:
            parts.append(text[start:end])
        place = end
    _read(text[place:], parts)
    return tuple(parts)


def _read(text: str, parts: list[str | Variable]) -> None:
    place = 0
    for match in REFERENCE.finditer(text):
        if match.start() > place:
            parts.append(text[place : match.start()])
        name, *path = (match["braced"] or match["dollar"]).split(".")
        parts.append(Variable(name, tuple(path), match[0], typed=match["dollar"] is not None))
        place = match.end()
    if place < len(text):
        parts.append(text[place:])


def variable(value: Json) -> Variable | None:
    """Return the reference that an object `{"var": "name"}` is; None for any other value."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    written = value.get("var")
    if not isinstance(written, str):
        return None
    name, *path = written.split(".")
    return Variable(name, tuple(path), written, typed=True)


def variables(value: Json, at: Pointer, bound: Bound) -> Iterator[tuple[Pointer, Variable]]:
    """Yield the references in `value`, which stands at `at`, each with its place."""
    if at in bound.whole:
        return
    if isinstance(value, str):
        for piece in pieces(value, bound.spans.get(at, ())):
            if isinstance(piece, Variable):
                yield at, piece
    elif (reference := variable(value)) is not None:
        yield at, reference
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from variables(item, (*at, key), bound)


KEYS = ("instructions", "plan")
"""Under which the instructions may stand."""
GOALS = ("final_answer", "result")
"""Variables that end a run when set: the first that the program sets anywhere."""
GENERATE = "llm_generate"
"""The call that asks the model."""
RETRIEVALS = frozenset({"retrieve_knowledge_graph", "vector_search"})

Input: TypeAlias = tuple[str, tuple[str, ...]]
"""Name of an input of a call, and where in the parameters its value stands."""

NAMING = frozenset({"output_var", "output_vars", "var_name"})
"""Parameters that name variables to set."""
TARGETS = ("target_seq", "jump_if_true", "jump_if_false")
"""Parameters that are a `seq_no`."""
STRUCTURE = NAMING | {*TARGETS, "tool_name"}
"""Parameters that are part of the program and no values."""
QUERY = ("query", "vector_search")  # the document's own example takes one for the other


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, as far as it can be read."""

    at: Pointer
    """Where it stands in the plan."""
    index: int
    """Position in the list, from 0."""
    seq: int
    """Its `seq_no`; -1 if that is no whole number."""
    type: str
    parameters: JsonObject

    @property
    def inside(self) -> Pointer:
        """Where its parameters stand in the plan."""
        return (*self.at, "parameters")

    @property
    def pairs(self) -> bool:
        """Whether it is an `assign` of the second dialect: `variable: value`."""
        return self.type == "assign" and "var_name" not in self.parameters

    @property
    def call(self) -> str:
        """Name of what it calls: an operation or `llm_generate`; empty if nothing."""
        if self.type == "calling":
            name = self.parameters.get("tool_name")
            return name if isinstance(name, str) else ""
        return self.type if self.type == GENERATE or self.type in RETRIEVALS else ""

    @property
    def conditional(self) -> bool:
        """Whether it is a jump that asks the model."""
        asked = bool(self.parameters.get("condition_prompt"))
        return self.type == "jmp_if" or (self.type == "jmp" and asked)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the parameters that say where it jumps; empty for no jump."""
        if self.type not in {"jmp", "jmp_if"}:
            return ()
        return TARGETS[1:] if self.conditional else TARGETS[:1]

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the variables that it sets."""
        if self.type == "assign":
            name = self.parameters.get("var_name")
            return tuple(self.parameters) if self.pairs else _names(name)
        if not self.call:
            return ()
        several = self.parameters.get("output_vars")
        return _names(several if several is not None else self.parameters.get("output_var"))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What goes into the call: each input, and where in the parameters it stands."""
        if self.type == "calling":
            given = self.parameters.get("tool_params")
            names = given if isinstance(given, dict) else ()
            return tuple((name, ("tool_params", name)) for name in names)
        if not self.call:
            return ()
        query = next((name for name in QUERY if name in self.parameters), "")
        alias = {query: "query"} if self.call in RETRIEVALS else {}
        return tuple(
            (alias.get(name, name), (name,)) for name in self.parameters if name not in STRUCTURE
        )

    @property
    def read(self) -> tuple[str, ...]:
        """Names of the parameters in which variables are read."""
        if self.type == "reasoning":
            return ()
        return tuple(self.parameters if self.pairs else self.parameters.keys() - STRUCTURE)

    def variables(self, bound: Bound) -> Iterator[tuple[Pointer, Variable]]:
        """Yield the references that it reads, each with its place in the plan."""
        for name in self.read:
            yield from variables(self.parameters[name], (*self.inside, name), bound)


def _names(value: Json) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    return tuple(name for name in found if isinstance(name, str) and name)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramPlan(WrittenPlan):
    """A plan in the program format; possibly malformed, which `plans.codec` tells.

    In `data`, two numbers below a text are those characters of it: the rest of the text is the
    program's own.
    """

    format: ClassVar[str] = "program"

    @classmethod
    def read(cls, source: object) -> JsonObject:
        """Return the body of a program: an object, or the bare list of instructions in one."""
        return read_object(wrapped(read_value(source)))

    def operations(self) -> tuple[str, ...]:
        """Return the names of the operations that the plan may call, sorted, each once.

        `llm_generate` is none: the engine's model answers it.
        """
        return tuple(sorted({step.call for step in self.instructions()} - {"", GENERATE}))

    def references(self) -> tuple[Reference, ...]:
        """Return every reference of an instruction to a variable, in document order."""
        bound = self.bound
        return tuple(
            Reference(at, variable.name, variable.written)
            for step in self.instructions()
            for at, variable in step.variables(bound)
        )

    @property
    def bound(self) -> Bound:
        """Where values were bound, prepared for reading."""
        return Bound.of(self.body, self.data)

    @property
    def steps(self) -> list[Json]:
        """The instructions as they stand, and whatever else is in the list."""
        return as_list(self.body.get(listed(self.body)))

    def instructions(self) -> tuple[Instruction, ...]:
        """Return what can be read of the instructions, in the order of the list."""
        key = listed(self.body)
        return tuple(_instruction((key, i), step) for i, step in enumerate(self.steps))

    def instruction(self, index: int) -> Instruction:
        """Return the instruction at position `index` of the list, as far as it can be read."""
        return _instruction((listed(self.body), index), self.steps[index])


def _instruction(at: tuple[str, int], step: Json) -> Instruction:
    given = as_object(step)
    seq, kind, parameters = given.get("seq_no"), given.get("type"), given.get("parameters")
    return Instruction(
        at=at,
        index=at[1],
        seq=seq if isinstance(seq, int) and not isinstance(seq, bool) else -1,
        type=kind if isinstance(kind, str) else "",
        parameters=as_object(parameters),
    )


def goal(instructions: Sequence[Instruction], goals: Sequence[str] = GOALS) -> str:
    """Return the variable that ends a run of these instructions; empty if none sets one."""
    names = {name for step in instructions for name in step.sets}
    return next((name for name in goals if name in names), "")


def listed(body: Mapping[str, Json]) -> str:
    """Return under which key the instructions stand."""
    return next((key for key in KEYS if isinstance(body.get(key), list)), KEYS[0])


def is_program(body: JsonObject) -> bool:
    """Return whether `body` has a list of what looks like instructions."""
    steps = body.get(listed(body))
    return isinstance(steps, list) and any(map(_looks_like_one, steps))


def _looks_like_one(step: Json) -> bool:
    return isinstance(step, dict) and ("seq_no" in step or {"type", "parameters"} <= step.keys())


def wrapped(plan: Json) -> Json:
    """Return `plan`, and a bare list as the object that it stands for."""
    return {KEYS[0]: plan} if isinstance(plan, list) else plan
