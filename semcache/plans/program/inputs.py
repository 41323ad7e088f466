"""The inputs of a program: literal values against the schemas of their operations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from semcache.canonical import Json, JsonObject, Pointer
from semcache.catalog.catalog import Catalog
from semcache.plans.finding import PLACEHOLDER, Finding, breaches
from semcache.plans.program.analysis import ProgramAnalysis, texts
from semcache.plans.program.document import GENERATE, RETRIEVALS, Instruction
from semcache.plans.program.variables import Bound, variables

DEFAULT_TOP_K = 5
"""How many results `vector_search` asks for if the program does not say, by the document."""


def inputs(analysis: ProgramAnalysis, steps: Iterable[Instruction]) -> Iterator[Finding]:
    """Yield the literal inputs that break the schema of their operation."""
    if analysis.catalog is None:
        return
    for step in steps:
        if step.call != GENERATE and step.call in analysis.catalog:
            places = {name: (*step.inside, *way) for name, way in step.inputs}
            raw = {name: _at(step.parameters, way) for name, way in step.inputs}
            given = fitted(step.call, raw, analysis.catalog)
            holder = (*step.inside, "tool_params") if step.type == "calling" else step.inside
            unknown = [at for name in given for at in _moving(raw, name, places, analysis.bound)]
            yield from breaches(
                given, holder, unknown=unknown, catalog=analysis.catalog, operation=step.call
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
    for at, text in texts(raw[name], start, bound):
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
