"""Programs as a test writes them, and what is told of them."""

from typing import Any

from semcache import Catalog, Operation
from semcache.canonical import Json, JsonObject
from semcache.plans.codec import check
from semcache.plans.program import ProgramPlan

SEARCH: JsonObject = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "top_k": {"type": "integer", "maximum": 9}},
    "required": ["query"],
    "additionalProperties": False,
}
RETRIEVALS = Catalog([
    Operation("vector_search", "Search.", SEARCH, effect="read"),
    Operation(
        "retrieve_knowledge_graph",
        "Ask.",
        {**SEARCH, "properties": {"query": {"type": "string"}}},
        effect="read",
    ),
])  # fmt: skip


def step(seq: Any, kind: Any, **parameters: Any) -> JsonObject:
    return {"seq_no": seq, "type": kind, "parameters": parameters}


def end(seq: Any, value: Json = "done") -> JsonObject:
    return step(seq, "assign", final_answer=value)


def program(*steps: Any) -> ProgramPlan:
    return ProgramPlan.from_dict(list(steps))


def told(*steps: Any, catalog: Catalog | None = None) -> list[str]:
    return [f"{f.code} {f}" for f in check(program(*steps), catalog)]
