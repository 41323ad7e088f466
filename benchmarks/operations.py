"""Measure which operations of a large catalog a model is shown.

    python benchmarks/operations.py sgd.jsonl [--operations 200] [--json OUT]

Each service and method in the stream's plans (`Media_1.FindMovies(directed_by,genre)`) becomes an
operation; its summary is its own name in words, its inputs are those seen in any row. The catalog
is filled up with other operations: every pairing of common verbs and nouns of business software,
made by this script. A prompt counts as found if the operation of its plan is among those shown.
The embedder is the packaged MiniLM; times are medians beside one embedding in the same run.
"""

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice, product
from pathlib import Path

from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import NotActionable
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.relevant import Relevant
from semcache.ports import PlanRequest
from semcache.testing import ScriptedModel

VERBS = "list get create update delete archive export approve assign count search book".split()
NOUNS = (
    "orders customers products invoices tickets branches projects employees shipments refunds "
    "contracts leads meetings messages calendars hotels flights restaurants payments accounts"
).split()
_CALL = re.compile(r"([\w.]+)\(([^)]*)\)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SHOWN = (5, 10, 20, 40)


def read(path: Path) -> list[tuple[str, str, list[str]]]:
    """Return (prompt, operation, inputs) of each row whose plan names a method."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found = _CALL.search(json.dumps(row["plan"]))
        if found:
            rows.append((row["text"], found[1], [one for one in found[2].split(",") if one]))
    return rows


def catalog(rows: Iterable[tuple[str, str, list[str]]], count: int) -> Catalog:
    """Return the operations of the rows, filled up to `count`."""
    inputs: dict[str, set[str]] = {}
    for _, name, given in rows:
        inputs.setdefault(name, set()).update(given)
    own = [operation(name, sorted(names)) for name, names in sorted(inputs.items())]
    others = (operation(f"{verb}_{noun}", ["id"]) for verb, noun in product(VERBS, NOUNS))
    return Catalog([*own, *islice(others, max(count - len(own), 0))])


def operation(name: str, inputs: list[str]) -> Operation:
    """Return an operation that says of itself no more than its name does."""
    said = _CAMEL.sub(" ", name.rsplit(".", maxsplit=1)[-1]).replace("_", " ").lower()
    properties: JsonObject = {one: {"type": "string"} for one in inputs}
    return Operation(name, said, {"type": "object", "properties": properties}, effect="read")


def measure(rows: list[tuple[str, str, list[str]]], count: int) -> JsonObject:
    """Return the shares found, by words alone and by both, and what showing them costs."""
    known = catalog(rows, count)
    embedder = MiniLMEmbedder(shipped_weights(), memo=0)
    result: JsonObject = {"operations": len(known), "prompts": len(rows)}
    for name, relevant in (("words", Relevant()), ("words and meaning", Relevant(embedder))):
        places, seconds = [], []
        for text, right, _ in rows:
            started = time.perf_counter()
            ranked = [one.name for one in relevant.ranked(text, known)]
            seconds.append(time.perf_counter() - started)
            places.append(ranked.index(right))
        found: JsonObject = {
            str(most): round(statistics.fmean(place < most for place in places), 4)
            for most in SHOWN
        }
        result[name] = {"found": found, "ms": round(statistics.median(seconds) * 1000, 3)}
    texts = [text for text, _, _ in rows[:200]]
    started = time.perf_counter()
    for text in texts:
        embedder.embed([text])
    result["one embedding, ms"] = round((time.perf_counter() - started) / len(texts) * 1000, 3)
    result["characters sent"] = {
        "all": sent(rows[0][0], known, None),
        "40": sent(rows[0][0], known, Relevant(embedder, most=40)),
    }
    return result


def sent(text: str, known: Catalog, relevant: Relevant | None) -> int:
    """Return how many characters a model is sent for one prompt."""
    model = ScriptedModel(['{"not_actionable": "no"}'] * 2)
    planner = ModelPlanner(model, relevant=relevant)
    request = PlanRequest(prompt=text, schema=None, catalog=known)
    with suppress(NotActionable):  # what this script's model says to everything
        planner.plan(request)
    return sum(len(message.content) for message in model.calls[0])


def main() -> int:
    """Print the table, and write JSON if asked."""
    parser = argparse.ArgumentParser(description="Which operations a model is shown.")
    parser.add_argument("stream", type=Path, help="JSON lines; `sgd` is one")
    parser.add_argument("--operations", type=int, default=200, help="default: 200")
    parser.add_argument("--rows", type=int, default=1000, help="default: 1000")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = measure(read(options.stream)[: options.rows], options.operations)
    for name, value in result.items():
        print(f"{name}: {json.dumps(value)}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
