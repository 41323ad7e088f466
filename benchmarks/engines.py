"""Measure what a step of each plan format costs beside the call that it makes.

    python benchmarks/engines.py [--steps 50] [--json OUT]

Each plan is a chain: a step calls an operation that returns its input, and takes the result of the
step before. The same calls are timed through `execution.call.call`, the one place that calls
operations (schema check, a thread of its own for the timeout, bounds of the output), and as bare
functions. Microseconds a step, the best median of several rounds; the jobs take turns, so that a
busy machine slows all of them.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.execution.call import call
from semcache.execution.program import ProgramEngine
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.plans.codec import decode
from semcache.ports import Engine, Limits
from semcache.testing import FakeClock

ECHO = Operation(
    "echo",
    "Return what is given.",
    {"type": "object", "properties": {"value": {}}, "additionalProperties": False},
    effect="read",
    call=lambda given: given,
)
CATALOG = Catalog([ECHO])
LIMITS = Limits(max_steps=10_000)
ROUNDS = 7


def routes(steps: int) -> JsonObject:
    """Return a chain of nodes."""
    plan: JsonObject = {"start_node": {"route": "n0"}}
    for at in range(steps):
        value: Json = f"$.n{at - 1}.value" if at else 1
        route = f"n{at + 1}" if at + 1 < steps else "end"
        plan[f"n{at}"] = {"operation": "echo", "input": {"value": value}, "route": route}
    return {**plan, "end": {"completed": True, "vars": {"answer": f"$.n{steps - 1}.value"}}}


def tasks(steps: int) -> JsonObject:
    """Return a chain of tasks."""
    listed: list[Json] = [{"id": "task0", "input": {}}]
    for at in range(1, steps + 1):
        value: Json = f"$task{at - 1}.value" if at > 1 else 1
        listed.append({"id": f"task{at}", "service": "echo", "input": {"value": value}})
    return {"tasks": listed}


def program(steps: int) -> JsonObject:
    """Return a chain of instructions."""
    listed: list[Json] = [
        {
            "seq_no": at,
            "type": "calling",
            "parameters": {
                "tool_name": "echo",
                "tool_params": {"value": f"${{x{at - 1}.value}}" if at else 1},
                "output_vars": [f"x{at}"],
            },
        }
        for at in range(steps)
    ]
    last: JsonObject = {"final_answer": f"${{x{steps - 1}}}"}
    return {"instructions": [*listed, {"seq_no": steps, "type": "assign", "parameters": last}]}


def running(engine: Engine, plan: JsonObject) -> Callable[[], object]:
    """Return what runs `plan` once."""
    decoded = decode(plan)
    return lambda: engine.execute(
        decoded, catalog=CATALOG, limits=LIMITS, clock=FakeClock(), observer=lambda _: None
    )


def calling(steps: int) -> None:
    """Call the operation as engines do, without a plan."""
    for at in range(steps):
        call(ECHO, {"value": at}, catalog=CATALOG, limits=LIMITS, timeout_s=30, node="n")


def bare(steps: int) -> None:
    """Call the function behind the operation."""
    for at in range(steps):
        if ECHO.call is not None:
            ECHO.call({"value": at})


def measure(steps: int) -> dict[str, float]:
    """Return microseconds a step."""
    jobs: dict[str, Callable[[], object]] = {
        "bare function": lambda: bare(steps),
        "call of an operation": lambda: calling(steps),
        "routes": running(RoutesEngine(), routes(steps)),
        "tasks": running(TasksEngine(), tasks(steps)),
        "program": running(ProgramEngine(None), program(steps)),
    }
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            times = []
            for _ in range(5):
                started = time.perf_counter()
                job()
                times.append((time.perf_counter() - started) / steps * 1e6)
            taken[name].append(statistics.median(times))
    return {name: round(min(times), 2) for name, times in taken.items()}


def main() -> int:
    """Print the table, and write JSON if asked."""
    parser = argparse.ArgumentParser(description="What a step of each plan format costs.")
    parser.add_argument("--steps", type=int, default=50, help="steps of a plan (default: 50)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = measure(options.steps)
    own = result["call of an operation"]
    for name, microseconds in result.items():
        print(f"{name:22} {microseconds:9.1f} us a step  {microseconds / own:6.2f} x a call")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
