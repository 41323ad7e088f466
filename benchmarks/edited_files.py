"""Edited files: real files of each format with something in them changed, and read again.

    python benchmarks/edited_files.py [--cases N] [--seed S] [--processes P] [--minutes M]
                                      [--only FORMAT ...] [--json OUT]

A change is made to the JSON (a member dropped, renamed, repeated or exchanged for another value,
among them huge numbers, NaN, deep nesting, slots in texts, lone surrogates) or to the bytes; then
the checksum of the format is made anew, most of the time. Each file is either taken, and then
every prompt of every tenant is looked up and stored once more, or refused by an error of ours that
names the file and the place in it, and then nothing of the tenant has changed. Any other error
ends the run with status 1 and is printed with the seed that shows it again.
"""

import argparse
import contextlib
import copy
import hashlib
import json
import logging
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from semcache import Parameter, PlanCache, SemCache
from semcache.cache.query import check_tenant
from semcache.cache.view import views
from semcache.canonical import as_object, loads
from semcache.errors import SemCacheError
from semcache.models.difference import LowRankDifference
from semcache.models.weights import BaseWeights, Tensors
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.model.plan_files import PlanFiles
from semcache.plans.codec import decode
from semcache.ports import Planned, PlanRequest
from semcache.prompts.schema import PromptSchema
from semcache.server.tokens import Tokens
from semcache.settings import Settings
from semcache.sources.functions import catalog_from
from semcache.stores.disk.store import DiskStore
from semcache.stores.records import seal
from semcache.testing import FakeClock, HashEmbedder

VERSION_1 = Path(__file__).parents[1] / "tests" / "data" / "version1"


def report(order: str = "", city: str = "", year: str = "", by: str = "", limit: int = 0) -> str:
    """Report visits."""
    return f"{order}{city}{year}{by}{limit}"


REPORTS = catalog_from(report)

# What is stored ------------------------------------------------------------------------------


def routes(**values: object) -> dict[str, Any]:
    """Return a plan that calls one operation with `values`."""
    call = {"operation": "report", "input": {**values, "columns": ["a", {"b": 1}]}, "route": "end"}
    return {
        "start_node": {"route": "call"},
        "call": call,
        "end": {"completed": True, "vars": {"answer": "$.call"}},
    }


PLANS: list[tuple[str, Any, list[Parameter]]] = [
    (
        "sales of ORD-123 in Boston in 2024",
        routes(order="ORD-123", city="Boston", year=2024),
        [
            Parameter("order", "ORD-123", mention="ORD-123"),
            Parameter("city", "Boston", mention="Boston"),
            Parameter("year", 2024, mention="2024"),
        ],
    ),
    (
        "orders of 'Ada Lovelace' over 250",
        {"sql": "SELECT * FROM orders WHERE name = 'Ada Lovelace' AND total > 250"},
        [
            Parameter("name", "Ada Lovelace", mention="Ada Lovelace"),
            Parameter("total", 250, mention="250"),
        ],
    ),
    (
        "send 17 to ada@example.com",
        {
            "tasks": [
                {"id": "task0", "input": {"amount": 17, "to": "ada@example.com"}},
                {"id": "task1", "service": "mail", "input": {"to": "$task0.to"}},
            ]
        },
        [Parameter("to", "ada@example.com", mention="ada@example.com")],
    ),
    ("all visits by month", routes(by="month", limit=10), []),
]
TOOL_CALLS = [{"name": "book", "arguments": {"city": "Paris", "nights": 3}}]


def fill(cache: PlanCache, tenant: str) -> None:
    """Store each plan for `tenant`, one of them twice, and say that one hit is wrong."""
    for prompt, plan, params in PLANS:
        cache.store(prompt, plan, params=params, tags=["report"], tenant=tenant)
    cache.store("book 3 nights in Paris", TOOL_CALLS, tenant=tenant)
    cache.lookup("please, sales of ORD-124 in Boston in 2023", tenant=tenant)
    cache.store(
        "please, sales of ORD-124 in Boston in 2023",
        routes(order="ORD-124", city="Boston", year=2023),
        params={"order": "ORD-124", "city": "Boston", "year": 2023},
        tenant=tenant,
    )
    cache.feedback(cache.lookup("all visits by month", tenant=tenant), right=True)


ASKED = (
    "sales of ORD-777 in Denver in 2021",
    "show me sales of ORD-777 in Denver in 2021",
    "orders of 'Grace Hopper' over 300",
    "send 18 to grace@example.com",
    "all visits by month",
    "book 2 nights in Rome",
)


def use(cache: PlanCache, rng: random.Random, *tenants: str) -> None:
    """Look prompts up and store a plan, for each tenant: none of it may fail."""
    for tenant in tenants:
        for text in rng.sample(ASKED, 3):
            cache.lookup(text, tenant=tenant).to_dict()
        cache.lookup(ASKED[0], tenant=tenant, params={"order": "X-1", "city": "Rome", "year": 2020})
        prompt, plan, params = rng.choice(PLANS)
        cache.store(prompt, plan, params=params, tenant=tenant)
        for entry in cache.entries(tenant=tenant):
            cache.lookup(entry.prompt[:1000] or "x", tenant=tenant).explain()
        cache.stats(tenant=tenant)


# Changes -------------------------------------------------------------------------------------


def deep(levels: int) -> Any:  # noqa: ANN401 - JSON
    """Return a list in a list, so many times."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7.5, -0.0, 1e308, -1e308, 1e18, 10**30, 10**400, 2**63,
    float("nan"), float("inf"), float("-inf"), "", " ", "x", "\0", "\ud800", "<x>", "<year>",
    "in <city> in <year> <a.b>", "$.call", "{{params.x}}", "$task0.to", "cafe\u0301 \U0001f600",
    "a" * 20_000,
    "verbatim", "unbound", "routes", "program", "text|sql", "no such codec", "2024-13-45", [], {},
    [None], [[]], {"": None}, {"text": "<a>", "slots": []}, ["year"], [0], [-1], [10**30], "[]",
)  # fmt: skip
WORDS = ("format", "version", "slots", "plan", "x", "", "input", "[]", "task0", "\ud800")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield where each value stands in `value`."""
    yield at
    if isinstance(value, dict | list):
        for key in [*value] if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def at(value: Any, place: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """Return what stands there."""
    for step in place:
        value = value[step]
    return value


def changed(document: Any, rng: random.Random) -> Any:  # noqa: ANN401
    """Return `document` with one to three changes."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        found = [*places(document)]
        place = rng.choice(found)
        if not place:
            if rng.random() < 0.1:
                return rng.choice(STRANGE)
            continue
        holder, key = at(document, place[:-1]), place[-1]
        rng.choice(CHANGES)(holder, key, at(document, rng.choice(found)), rng)
    return document


def _drop(holder: Any, key: Any, _: Any, __: random.Random) -> None:  # noqa: ANN401
    del holder[key]


def _exchange(holder: Any, key: Any, _: Any, rng: random.Random) -> None:  # noqa: ANN401
    holder[key] = copy.deepcopy(rng.choice(STRANGE))


def _move(holder: Any, key: Any, other: Any, _: random.Random) -> None:  # noqa: ANN401
    holder[key] = copy.deepcopy(other)


def _repeat(holder: Any, key: Any, _: Any, rng: random.Random) -> None:  # noqa: ANN401
    if isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[rng.choice(WORDS)] = copy.deepcopy(holder[key])


def _rename(holder: Any, key: Any, _: Any, rng: random.Random) -> None:  # noqa: ANN401
    if isinstance(holder, dict):
        holder[rng.choice((*WORDS, *holder))] = holder.pop(key)
    else:
        rng.shuffle(holder)


def _nest(holder: Any, key: Any, _: Any, rng: random.Random) -> None:  # noqa: ANN401
    holder[key] = rng.choice(
        (deep(3), deep(99), deep(150), deep(300), [holder[key]], {"x": holder[key]})
    )


def _bend(holder: Any, key: Any, _: Any, rng: random.Random) -> None:  # noqa: ANN401
    """Change a text or a number a little, or put a slot into a text."""
    value = holder[key]
    if isinstance(value, str):
        cut = rng.randrange(len(value) + 1)
        put = rng.choice(
            ("<x>", "<year> ", "\0", "\u202e", "", "  ", "é", "'", "{{params.y}}", "}")
        )
        holder[key] = value[:cut] + put + value[cut + rng.choice((0, 0, 1, 5)) :]
    elif isinstance(value, int | float):
        half = value + 0.5 if abs(value) < 2**53 else 0.5
        holder[key] = rng.choice((-value, value + 1, value * 10**9, str(value), half))
    else:
        holder[key] = rng.choice((str(value)[:50], len(value) if value else 0))


CHANGES: tuple[Callable[..., None], ...] = (
    _drop, _exchange, _exchange, _move, _repeat, _rename, _nest, _bend, _bend,
)  # fmt: skip


def scribbled(content: bytes, rng: random.Random) -> bytes:
    """Return `content` with bytes flipped, cut out, repeated or put in."""
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((1, 1, 3, 20, 500)))
    match rng.randrange(5):
        case 0:
            return content[:start] + bytes([rng.randrange(256)]) + content[start + 1 :]
        case 1:
            return content[:start] + content[end:]
        case 2:
            return content[:end] + content[start:]
        case 3:
            return content[:start]
        case _:
            put = rng.choice((b"\0", b"\xff\xfe", b"{", b"]", b'"', b"NaN", b"1e999", b",", b"\n"))
            return content[:start] + put + content[start:]


def spelled(document: Any, rng: random.Random) -> bytes:  # noqa: ANN401
    """Return `document` as JSON, sometimes as no reader of the standard would take it."""
    sure = rng.random() < 0.7
    text = json.dumps(document, ensure_ascii=sure, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


# Formats -------------------------------------------------------------------------------------


@dataclass
class Case:
    """What an attempt came to."""

    taken: bool
    error: SemCacheError | None = None
    names: tuple[str, ...] = ()
    """What the message must name, one of them."""


@dataclass
class Bench:
    """The files that are changed, and a cache in memory that takes them."""

    folder: Path
    cache: PlanCache
    number: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def made(cls, folder: Path) -> "Bench":
        """Return one with a file of each format, as this version writes it."""
        cache = PlanCache.open(embedder=HashEmbedder(), clock=FakeClock(), max_wrong=0.05)
        bench = cls(folder, cache)
        for tenant in ("acme", "umbrella"):
            fill(cache, tenant)
        cache.export(folder / "plans.jsonl", tenant="acme")
        cache.export_evidence(folder / "evidence.json", tenant="acme")
        bench.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        bench._directory()
        return bench

    def _directory(self) -> None:
        """Make a directory of this version, with snapshots and a correction that waits."""
        views.WORTHWHILE = 1
        kept = self.folder / "kept"
        with PlanCache.open(kept, embedder=HashEmbedder(), clock=FakeClock()) as cache:
            fill(cache, "acme")
            cache.lookup(ASKED[0], tenant="acme")
        (kept / "corrections").mkdir(mode=0o700, exist_ok=True)
        self._weights()
        self.parts["semcache"] = SemCache.open(catalog=REPORTS, embedder=HashEmbedder())
        prompt = "report visits in Boston, then report orders by month"
        self.parts["steps"] = self.parts["semcache"].decompose(prompt).to_json()
        self.parts["correction"] = {
            "kind": "remove", "tenant": "acme", "entries": ["0" * 32], "labels": [],
            "template": "", "why": "invalidated",
        }  # fmt: skip

    def _weights(self) -> None:
        """Make a folder of weights of 8 bits and one of a difference, of a few numbers each."""
        place = self.folder / "weights"
        place.mkdir()
        tensors = {"layer": np.ones((6, 4), np.int8), "layer.scale": np.ones(6, np.float32)}
        save_file(tensors, place / "weights.safetensors")
        told = hashlib.sha256((place / "weights.safetensors").read_bytes()).hexdigest()
        manifest = {"name": "mini", "files": {"weights.safetensors": told}}
        (place / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        factors = {
            "layer.down": np.ones((2, 4), np.float32),
            "layer.up": np.ones((6, 2), np.float32),
        }
        found = LowRankDifference.of("mini", factors, {"prompts": 3})
        (self.folder / "difference").mkdir()
        for name, content in found.files().items():
            (self.folder / "difference" / name).write_bytes(content)

    def fresh(self, source: Path) -> Path:
        """Return a copy of a directory that a case may change."""
        place = self.folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        return place

    def open(self, directory: Path) -> PlanCache:
        """Return a cache on `directory`."""
        return PlanCache.open(directory, embedder=HashEmbedder(), clock=FakeClock())


def _refused(action: Callable[[], object], *names: str) -> Case:
    try:
        action()
    except SemCacheError as error:
        return Case(False, error, names)
    return Case(True)


def plans_case(bench: Bench, rng: random.Random) -> Case:
    """Import an export of plans."""
    path = bench.folder / "edited.jsonl"
    head, _, body = bench.files["plans.jsonl"].partition(b"\n")
    lines = body.split(b"\n")[:-1]
    told = json.loads(head)
    if rng.random() < 0.15:
        body = scribbled(body, rng)
    else:
        for _ in range(rng.choice((1, 1, 2))):
            n = rng.randrange(len(lines))
            lines[n] = spelled(
                changed(json.loads(bench.files["plans.jsonl"].split(b"\n")[n + 1]), rng), rng
            )
        body = b"".join(line + b"\n" for line in lines)
    told["sha256"] = hashlib.sha256(body).hexdigest()
    if rng.random() < 0.1:
        told = changed(told, rng)
    path.write_bytes(spelled(told, rng) + b"\n" + body)
    tenant = f"t{bench.number}"
    cache = bench.cache
    fresh = rng.random() < 0.9  # else into a tenant that has plans of its own
    tenant = tenant if fresh else "umbrella"
    before = {entry.id for entry in cache.entries(tenant=tenant)}
    case = _refused(lambda: cache.import_(path, tenant=tenant), "edited.jsonl")
    if case.taken:
        use(cache, rng, tenant)
        if rng.random() < 0.2:
            cache.export(path, tenant=tenant)
            cache.import_(path, tenant=tenant)
        cache.clear(tenant=tenant)
        if not fresh:
            fill(cache, tenant)
    elif {entry.id for entry in cache.entries(tenant=tenant)} != before:
        raise AssertionError("a file was refused, and something of it was taken")
    return case


def evidence_case(bench: Bench, rng: random.Random) -> Case:
    """Import evidence."""
    path = bench.folder / "edited.json"
    content = bench.files["evidence.json"]
    if rng.random() < 0.1:
        path.write_bytes(scribbled(content, rng))
    else:
        path.write_bytes(spelled(changed(json.loads(content), rng), rng))
    cache, tenant = bench.cache, f"t{bench.number}"
    case = _refused(lambda: cache.import_evidence(path, tenant=tenant), "edited.json")
    if case.taken:
        cache.store(*PLANS[0][:2], params=PLANS[0][2], tenant=tenant)
        use(cache, rng, tenant)
        cache.export_evidence(path, tenant=tenant)
        cache.import_evidence(path, tenant=tenant)
    elif cache.evidence(tenant=tenant).labels:
        raise AssertionError("a file was refused, and something of it was taken")
    cache.clear(tenant=tenant)
    return case


def correction_case(bench: Bench, rng: random.Random) -> Case:
    """Open a directory with a correction that waits for it."""
    place = bench.fresh(bench.folder / "kept")
    document = changed(bench.parts["correction"], rng)
    text = spelled(document, rng).decode(errors="replace")
    content = seal(text).encode()
    if rng.random() < 0.2:
        content = scribbled(content, rng)
    (place / "corrections" / "0011223344556677").write_bytes(content)
    with bench.open(place) as cache:
        use(cache, rng, "acme")
    return Case(True)


def record_case(bench: Bench, rng: random.Random) -> Case:
    """Open a directory in which an entry was edited, its checksum made anew."""
    from semcache.stores.records import checksum  # noqa: PLC0415 - the one that makes checksums

    place = bench.fresh(bench.folder / "kept")
    shutil.rmtree(place / "views", ignore_errors=True)
    with closing(DiskStore.open(place)) as store:
        record = rng.choice(store.scan("acme"))
    document = changed(json.loads(record.body), rng)
    body = spelled(document, rng).decode(errors="replace")
    edited = type(record)(**{n: getattr(record, n) for n in record.__slots__} | {"body": body})
    with closing(sqlite3.connect(place / "semcache.db")) as connection, connection:
        connection.execute(
            "UPDATE records SET body = ?, checksum = ? WHERE tenant = ? AND id = ?",
            (body, checksum(edited), record.tenant, record.id),
        )
    with bench.open(place) as cache:
        use(cache, rng, "acme")
    return Case(True)


def snapshot_case(bench: Bench, rng: random.Random) -> Case:
    """Open a directory whose snapshot was edited, and the checksum that the store names."""
    place = bench.fresh(bench.folder / "kept")
    [path] = (place / "views").glob("*.view")
    first, _, content = path.read_bytes().partition(b"\n")
    lines = content.split(b"\n")
    n = rng.randrange(len(lines))
    if rng.random() < 0.2:
        content = scribbled(content, rng)
    else:
        lines[n] = spelled(changed(json.loads(lines[n]), rng), rng)
        content = b"\n".join(lines)
    told = hashlib.sha256(content).hexdigest()
    path.write_bytes(first[: -len(told)] + told.encode() + b"\n" + content)
    with closing(DiskStore.open(place)) as store:
        store.put_note("acme", views.NOTE, told)
    with bench.open(place) as cache:
        use(cache, rng, "acme")
    return Case(True)


def index_case(bench: Bench, rng: random.Random) -> Case:
    """Open a directory whose index was edited, its checksum made anew."""
    place = bench.fresh(bench.folder / "kept")
    [path] = (place / "views").glob("*.index")
    magic, _, content = path.read_bytes().partition(b"\n")
    said, _, rest = content.partition(b"\n")
    if rng.random() < 0.3:
        content = scribbled(content, rng)
    else:
        content = spelled(changed(json.loads(said), rng), rng) + b"\n" + rest
    told = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(magic[: -len(told)] + told + b"\n" + content)
    with bench.open(place) as cache:
        use(cache, rng, "acme")
    return Case(True)


def manifest_case(bench: Bench, rng: random.Random) -> Case:
    """Open a directory whose manifest was edited."""
    place = bench.fresh(bench.folder / "kept")
    path = place / "manifest.json"
    content = path.read_bytes()
    path.write_bytes(
        scribbled(content, rng)
        if rng.random() < 0.3
        else spelled(changed(json.loads(content), rng), rng)
    )

    def opened() -> None:
        with bench.open(place) as cache:
            use(cache, rng, "acme")

    return _refused(opened, str(place))


def version1_case(bench: Bench, rng: random.Random) -> Case:
    """Open a directory of version 1 in which rows were edited, their checksums made anew."""
    place = bench.fresh(VERSION_1)
    with closing(sqlite3.connect(place / "cache.db")) as connection, connection:
        query = "SELECT rowid, key, CAST(value AS BLOB) FROM Cache WHERE raw = 1"
        rows = [row for row in connection.execute(query) if row[1][:2] in {"r/", "m/", "u/", "c/"}]
        for rowid, key, value in rng.sample(rows, rng.choice((1, 1, 3))):
            text = value.decode()
            if key.startswith("c/"):
                put = spelled(changed(json.loads(text), rng), rng).decode(errors="replace")
            else:
                parts = text.partition("\n")[2].split("\n")
                n = rng.randrange(len(parts))
                try:
                    parts[n] = spelled(changed(json.loads(parts[n]), rng), rng).decode(
                        errors="replace"
                    )
                except ValueError:
                    parts[n] = scribbled(parts[n].encode(), rng).decode(errors="replace")
                put = seal("\n".join(parts))
            connection.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (put, rowid))

    def opened() -> None:
        with bench.open(place) as cache:
            use(cache, rng, "acme", "50%/a b")

    return _refused(opened, str(place))


SETTINGS = """\
threshold = 0.9
max_wrong = 0.02
ttl_s = 3600
max_entries = 100
timezone = "Europe/Berlin"
verify = "inline"
selection = false
[model_arguments]
reasoning_effort = "low"
top = 3
[domains]
github = ["issue", "pull request"]
[translations.state]
California = "CA"
Texas = 2
"""


def tokens_case(bench: Bench, rng: random.Random) -> Case:
    """Read tokens of a door, as lines or as JSON."""
    del bench
    token = "acme-token-0123456789"  # noqa: S105 - made up
    lines = f"# who may call\n{token} acme\nother-{token} umbrella read,write  # both\n"
    listed = {token: "acme", f"other-{token}": {"tenant": "umbrella", "rights": ["read", "write"]}}
    content = lines.encode() if rng.random() < 0.4 else spelled(changed(listed, rng), rng)
    if content == lines.encode() or rng.random() < 0.2:
        content = scribbled(content, rng)
    text = content.decode(errors="replace")

    def read() -> None:
        found = Tokens.read(text)
        for tenant in found.tenants:
            check_tenant(tenant)

    case = _refused(read, "token")
    if case.error is not None and token in str(case.error):
        raise AssertionError("an error shows a token")
    return case


def weights_case(bench: Bench, rng: random.Random) -> Case:
    """Read weights of 8 bits whose manifest or tensors were edited."""
    return _weights(bench, rng, bench.folder / "weights", lambda at: BaseWeights.of(at).read())


def difference_case(bench: Bench, rng: random.Random) -> Case:
    """Read the difference of weights, edited, and add it to them."""

    def added(at: Path) -> None:
        LowRankDifference.read(at).added(Tensors({"layer": np.zeros((6, 4), np.float32)}))

    return _weights(bench, rng, bench.folder / "difference", added)


def _weights(
    bench: Bench, rng: random.Random, source: Path, read: Callable[[Path], object]
) -> Case:
    place = bench.fresh(source)
    manifest = place / "manifest.json"
    document = json.loads(manifest.read_bytes())
    [tensors] = place.glob("*.safetensors")
    content = tensors.read_bytes()
    if rng.random() < 0.5:
        document = changed(document, rng)
    elif rng.random() < 0.5:
        content = scribbled(content, rng)
    else:
        length = int.from_bytes(content[:8], "little")
        head = spelled(changed(json.loads(content[8 : 8 + length]), rng), rng)
        content = len(head).to_bytes(8, "little") + head + content[8 + length :]
    told = hashlib.sha256(content).hexdigest()
    if content != tensors.read_bytes():
        tensors.unlink()
        if "sha256" in document:
            document["sha256"] = told
            tensors = place / f"difference-{told[:16]}.safetensors"
        else:
            document["files"][tensors.name] = told
        tensors.write_bytes(content)
    text = spelled(document, rng)
    manifest.write_bytes(scribbled(text, rng) if rng.random() < 0.1 else text)
    return _refused(lambda: read(place), str(place), "a difference cannot be added")


SCHEMA = PromptSchema("list", ("visit",), ("month",), {"year": "2024"})


def plan_file_case(bench: Bench, rng: random.Random) -> Case:
    """Plan by a plan file of OneMCP, and store the plan."""
    folder = bench.folder / "plans"
    shutil.rmtree(folder, ignore_errors=True)
    files, params = PlanFiles(folder, FakeClock()), SCHEMA.parameters()
    body = routes(by="month", year="{{params.year}}")
    del body["call"]["input"]["columns"]  # which the operation does not take
    plan = decode(body)
    if not files.write(SCHEMA, Planned(plan, params, "x"), REPORTS):
        raise AssertionError("no plan file was written")
    [path] = folder.iterdir()
    text = spelled(changed(json.loads(path.read_text("utf-8")), rng), rng)
    path.write_bytes(scribbled(text, rng) if rng.random() < 0.2 else text)
    found: list[Planned] = []
    request = PlanRequest("list visits in 2024 by month", SCHEMA, REPORTS)
    case = _refused(lambda: found.append(files.plan(request)), str(path))
    tenant = f"t{bench.number}"
    for planned in found:
        bench.cache.store(request.prompt, planned.plan, params=planned.params, tenant=tenant)
        use(bench.cache, rng, tenant)
        bench.cache.clear(tenant=tenant)
    return case


def steps_case(bench: Bench, rng: random.Random) -> Case:
    """Go on planning from the steps of a prompt."""
    told = bench.parts["steps"]

    def resumed() -> IntentGraph:
        graph = IntentGraph.from_json(as_object(loads(content, what="the intent graph")))
        graph.mermaid()
        graph.why("step1")
        return graph

    content = spelled(changed(told, rng), rng).decode(errors="surrogatepass")
    graphs: list[IntentGraph] = []
    case = _refused(lambda: graphs.append(resumed()), "the intent graph")
    for graph in graphs:
        with contextlib.suppress(SemCacheError):  # its steps may not be plannable: that is no fault
            bench.parts["semcache"].resume_planning(graph)
    return case


def settings_case(bench: Bench, rng: random.Random) -> Case:
    """Load settings from a TOML file, and open a cache by them."""
    path = bench.folder / "edited.toml"
    if rng.random() < 0.3:
        path.write_bytes(scribbled(SETTINGS.encode(), rng))
    else:
        path.write_bytes(_as_toml(rng).encode(errors="surrogatepass"))

    def loaded() -> None:
        settings = Settings.load(file=path)
        with PlanCache.open(
            embedder=HashEmbedder(),
            clock=FakeClock(),
            threshold=settings.threshold,
            max_wrong=settings.max_wrong,
            ttl_s=settings.ttl_s,
            max_entries=settings.max_entries,
        ) as cache:
            use(cache, rng, "acme")

    return _refused(loaded, "edited.toml")


def _as_toml(rng: random.Random) -> str:
    lines = SETTINGS.splitlines()
    n = rng.randrange(len(lines))
    value = rng.choice(STRANGE)
    said = json.dumps(value, ensure_ascii=False)
    said = re.sub("NaN", "nan", re.sub("Infinity", "inf", said))
    name = rng.choice((*(f for f in Settings.__slots__ if f != "directory"), "x"))
    match rng.randrange(4):
        case 0:
            lines[n] = f"{lines[n].partition('=')[0]}= {said}"
        case 1:
            lines.insert(0, f"{name} = {said}")
        case 2:
            del lines[n]
        case _:
            lines.insert(n, lines[rng.randrange(len(lines))])
    return "\n".join(lines)


FORMATS: dict[str, tuple[Callable[[Bench, random.Random], Case], float]] = {
    "plans": (plans_case, 0.5),
    "evidence": (evidence_case, 0.2),
    "settings": (settings_case, 0.1),
    "record": (record_case, 0.05),
    "snapshot": (snapshot_case, 0.05),
    "index": (index_case, 0.02),
    "correction": (correction_case, 0.03),
    "manifest": (manifest_case, 0.02),
    "version1": (version1_case, 0.03),
    "tokens": (tokens_case, 0.1),
    "weights": (weights_case, 0.05),
    "difference": (difference_case, 0.05),
    "plan file": (plan_file_case, 0.1),
    "steps": (steps_case, 0.1),
}
"""Format → what changes and reads a file of it, and its share of all cases."""


def run(seed: int, bench: Bench, only: tuple[str, ...] = ()) -> tuple[str, Case]:
    """Make and read the file of `seed`; return its format and what it came to.

    Raises:
        AssertionError: it was refused without its name, or something was lost.
    """
    rng = random.Random(seed)  # noqa: S311 - not a secret
    names = [*(only or FORMATS)]
    [name] = rng.choices(names, [FORMATS[n][1] for n in names])
    bench.number += 1
    case = FORMATS[name][0](bench, rng)
    if case.error is not None and not any(one in str(case.error) for one in case.names):
        raise AssertionError(f"an error does not name the file: {case.error!r}") from case.error
    return name, case


CHUNK = 250
"""Files that a process makes and reads before it tells what became of them."""
_bench: list[Bench] = []
"""The one of this process; none before its first file."""


@dataclass
class Told:
    """What became of some files."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Each other error, with the seed that shows it again."""


def begin(folder: Path) -> None:
    """Make the files that this process changes."""
    logging.disable(logging.WARNING)  # each file that is set aside is told
    place = folder / f"{os.getpid()}"
    place.mkdir()
    _bench.append(Bench.made(place))


def read_files(seeds: range, only: tuple[str, ...]) -> Told:
    """Make and read the files of `seeds`."""
    told = Told()
    for seed in seeds:
        try:
            name, case = run(seed, _bench[0], only)
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            told.wrong.append(f"seed {seed}:\n{traceback.format_exc(limit=-6)}")
        else:
            told.counts[f"{name}: {'taken' if case.taken else type(case.error).__name__}"] += 1
    return told


def main() -> int:
    """Print how many files of each format were taken and refused, and each other error."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", nargs="+", choices=FORMATS, default=())
    options.add_argument("--stop-after", type=int, default=20, help="other errors")
    options.add_argument("--minutes", type=float, help="end after so long, whatever is left")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    seeds = range(given.seed, given.seed + given.cases)
    chunks = [seeds[n : n + CHUNK] for n in range(0, len(seeds), CHUNK)]
    all_told, began = Told(), time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            given.processes, get_context("spawn"), initializer=begin, initargs=(Path(folder),)
        ) as pool,
    ):
        for told in pool.map(read_files, chunks, repeat(tuple(given.only))):
            all_told.counts += told.counts
            all_told.wrong += told.wrong
            print("".join(told.wrong), end="", file=sys.stderr, flush=True)
            late = given.minutes and time.perf_counter() - began > 60 * given.minutes
            if late or len(all_told.wrong) >= given.stop_after:
                pool.shutdown(cancel_futures=True)
                break
    took, wrong = time.perf_counter() - began, len(all_told.wrong)
    for what, count in sorted(all_told.counts.items()):
        print(f"{count:8}  {what}")
    read = all_told.counts.total() + wrong
    print(f"{wrong:8}  anything else, in {read} files and {took:.0f} s")
    if given.json:
        document = {**all_told.counts, "else": wrong, "seconds": round(took)}
        given.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
