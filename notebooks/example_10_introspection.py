"""Example 10: an agent that looks at the run it stands in.

    python notebooks/example_10_introspection.py

Operations of a plan call the introspection tools: where am I, who is above me, what did the step
before me give, is this cached; one asks for a further run, which the application accepts. Offline.
"""

import json
from typing import Any

from semcache import SemCache, operation
from semcache.catalog.catalog import Catalog
from semcache.errors import NotInRun
from semcache.runs.creation import SpawnRequest, revise
from semcache.runs.tools import TOOLS, Introspection
from semcache.testing import FakeClock, HashEmbedder


def operations(tools: list[Introspection]) -> Catalog:
    """Return what the plan calls; `tools` is filled before it runs."""

    @operation(effect="read")
    def collect() -> list[int]:
        """Collect figures."""
        return [3, 1, 2]

    @operation(effect="read")
    def reflect() -> dict[str, Any]:
        """Look around."""
        ask = tools[0].call
        return {
            "here": ask("inspect_current_node"),
            "above": ask("read_ancestor_chain", {"maxDepth": 2}),
            "before": ask("inspect_prior_outputs", {"count": 1}),
            "cached": ask("inspect_cache_status", {"promptHash": "0" * 64}),
            "asked": ask(
                "request_spawn_workflow",
                {"name": "second opinion", "description": "Sort the figures."},
            ),
        }

    return Catalog([collect, reflect])


PLAN = {
    "start_node": {"route": "collect"},
    "collect": {"operation": "collect", "input": {}, "route": "reflect"},
    "reflect": {"operation": "reflect", "input": {}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.reflect"}},
}


def main() -> None:
    """Let an agent look around, then decide on what it asked for."""
    print("tools:", [tool.name for tool in TOOLS])
    print("as OpenAI wants them:", json.dumps(TOOLS[1].to_openai())[:120], "...")
    tools: list[Introspection] = []
    with SemCache.open(
        catalog=operations(tools), embedder=HashEmbedder(), clock=FakeClock()
    ) as semcache:
        tools.append(semcache.introspection)
        semcache.cache.store("look around", PLAN)
        answer = semcache.run("look around")
        seen: Any = answer.value
        for name, said in seen["answer"].items():
            print(f"{name}: {json.dumps(said)[:110]}")
        (request,) = semcache.introspection.spawns.pending()

        def opinion(request: SpawnRequest) -> list[int]:
            print("accepted:", request.name)
            return sorted([3, 1, 2])

        semcache.introspection.spawns.accept(request.id, opinion)
        print(answer.run)

        def work() -> object:
            semcache.run("look around")
            return revise(lambda: "a better answer")

        print("revised:", semcache.workflow("with a revision", work)())
        print(semcache.runs.latest())
    try:
        semcache.introspection.call("inspect_current_node")
    except NotInRun as error:
        print("outside:", error)


if __name__ == "__main__":
    main()
