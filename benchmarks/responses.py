"""Measure the response cache beside diskcache, both in this one run.

    python benchmarks/responses.py [--json OUT] [--directory DIR]

A request is a system and a user message of 2 KB each; an answer is a plan as a model writes it,
2 KB of JSON. The cache holds 500 answers, and hits go round all of them. `hit` is everything that a
caller of a `CachedModel` waits for: the key, the lookup, and a completion of its own; `get` is the
lookup alone. Times are means of a round in microseconds, the best of several rounds; both sides of
a ratio take turns, so that a busy machine slows both. What a model itself takes is no part of this.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import diskcache

from semcache import __version__
from semcache.ports import Message
from semcache.responses.cache import Responses
from semcache.responses.cached_model import CachedModel
from semcache.responses.key import ModelRequest, response_key
from semcache.testing import ScriptedModel

ENTRIES = 500
ROUND = 50  # short, so that some rounds find the machine at rest
ROUNDS = 200
ANSWER = json.dumps({"start_node": {"route": "a"}, "a": {"input": {"text": "plan " * 400}}})


def asked(number: int) -> list[Message]:
    """Return the messages of one request, 4 KB together."""
    return [Message("system", "You plan. " * 205), Message("user", f"{number:06} sales " * 157)]


def best(jobs: dict[str, Callable[[int], object]]) -> dict[str, float]:
    """Return the microseconds of each job, which is called with the number of a request."""
    rounds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(ROUNDS):
        first = turn * ROUND % ENTRIES
        for name, job in jobs.items():
            started = time.perf_counter()
            for number in range(first, first + ROUND):
                job(number)
            rounds[name].append((time.perf_counter() - started) / ROUND * 1e6)
    return {name: min(times) for name, times in rounds.items()}


def measure(directory: Path) -> dict[str, float]:
    """Return what was measured, in microseconds."""
    requests = [asked(number) for number in range(ENTRIES)]
    keys = [response_key(ModelRequest(model="m", messages=each)) for each in requests]
    plain = diskcache.Cache(str(directory / "diskcache"))
    memory, disk = Responses.open(), Responses.open(directory / "responses")
    models = [CachedModel(ScriptedModel([ANSWER] * ENTRIES), each) for each in (memory, disk)]
    for number, key in enumerate(keys):
        plain[key] = ANSWER
        for model, responses in zip(models, (memory, disk), strict=True):
            model.complete(requests[number])
            responses.set(key, {"text": ANSWER})
    found = best({
        "diskcache get": lambda number: plain.get(keys[number]),
        "key": lambda number: response_key(ModelRequest(model="m", messages=requests[number])),
        "memory get": lambda number: memory.get(keys[number]),
        "memory hit": lambda number: models[0].complete(requests[number]),
        "disk get": lambda number: disk.get(keys[number]),
        "disk hit": lambda number: models[1].complete(requests[number]),
    })  # fmt: skip
    disk.close()
    plain.close()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0 if the budgets were kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    parser.add_argument("--directory", type=Path, help="where the caches are made")
    given = parser.parse_args(arguments)
    tmpfs = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    where = given.directory or (tmpfs if tmpfs.is_dir() else Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(dir=where) as directory:
        found = measure(Path(directory))
    base = found["diskcache get"]
    print(f"semcache {__version__}, {ENTRIES} answers of {len(ANSWER)} bytes, caches in {where}\n")
    for name, microseconds in found.items():
        print(f"{name:15} {microseconds:7.1f} µs   {microseconds / base:5.2f} x diskcache get")
    met = found["key"] < 50 and max(found["memory get"], found["disk get"]) < 5 * base
    print(f"\nhit under 5 x a diskcache get, key under 50 µs: {'yes' if met else 'NO'}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
