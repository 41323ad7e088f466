"""Example 9: reflection on three levels, a call of a model, a step, and a whole run.

    python notebooks/example_09_reflection.py

A model answers prose and is corrected, by what another model says of it; a step fails once and
works then; a cached plan breaks when it runs and is made anew. The tree shows each attempt. Models
are scripted, offline.
"""

import json
from collections.abc import Sequence

from pydantic import TypeAdapter

from semcache import SemCache, Settings, catalog_from, operation
from semcache.ports import Completion, Message
from semcache.runs.recorder import Runs
from semcache.runs.reflection import Attempt, Prompt, Reflection
from semcache.runs.run_context import OpenRun
from semcache.testing import FakeClock, HashEmbedder, ScriptedModel

TOWNS = TypeAdapter(list[str])


@operation(effect="read")
def count_visits(town: str) -> int:
    """Count the visits to a town."""
    return len(town)


@operation(effect="read")
def visits_of_old(town: str) -> int:
    """Count as it was done before."""
    raise KeyError(f"visits to {town}")


def plan(name: str) -> dict[str, object]:
    """Return the plan that asks one operation about Oslo."""
    return {
        "start_node": {"route": "count"},
        "count": {"operation": name, "input": {"town": "Oslo"}, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.count"}},
    }


class Planner:
    """A model that can plan one thing, and nothing else."""

    fingerprint = "example"

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the plan that works, to whoever asks for a plan."""
        planning = "start_node" in messages[0].content
        return Completion(json.dumps(plan("count_visits")) if planning else "no")


def of_a_model(clock: FakeClock, runs: Runs) -> None:
    """Ask a model that answers prose, and hand on what a second model says of it."""
    judge = ScriptedModel([
        json.dumps({
            "shouldRetry": True,
            "reason": "it was never told to answer in JSON",
            "revisedSystemPrompt": "Answer with a JSON array of texts alone.",
        })
    ])  # fmt: skip
    model = ScriptedModel(["There are Oslo and Bergen!", '["Oslo", "Bergen"]'])
    reflection = Reflection(clock=clock, model=judge)
    with OpenRun("level: model", home=runs, clock=clock):
        towns = reflection.ask(Prompt("List the ports."), model, read=TOWNS.validate_json)
    print("towns:", towns, "after", reflection.history[0].reason)


def of_a_step(clock: FakeClock, runs: Runs) -> None:
    """Do what fails once."""

    def work(attempt: Attempt) -> str:
        if attempt.number == 1:
            raise ConnectionResetError("the line went dead")
        return "loaded"

    with OpenRun("level: step", home=runs, clock=clock):
        print("step:", Reflection(clock=clock, delay_s=2).step("load", work), clock.sleeps)


def of_a_run() -> None:
    """Run a cached plan that breaks."""
    with SemCache.open(
        catalog=catalog_from(count_visits, visits_of_old), embedder=HashEmbedder(),
        clock=FakeClock(), settings=Settings(reflection=True), model=Planner(),
    ) as semcache:  # fmt: skip
        semcache.cache.store("visits to Oslo", plan("visits_of_old"), params={"town": "Oslo"})
        answer = semcache.run("visits to Oslo", params={"town": "Oslo"})
        print("run:", answer.value)
        print(answer.run)


def main() -> None:
    """Show all three."""
    clock, runs = FakeClock(), Runs()
    of_a_model(clock, runs)
    of_a_step(clock, runs)
    for run in reversed(runs.list()):
        print(run)
    of_a_run()


if __name__ == "__main__":
    main()
