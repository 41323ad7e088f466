"""`semcache stats`, `list`, `remove`, `clear`, `export`, `import` and `evidence`."""

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.cache.feedback.correction import Removed
from semcache.canonical import Json, JsonObject
from semcache.commands.options import (
    add_command,
    add_common,
    cache_of,
    encryption_key,
    existing_cache_of,
)
from semcache.commands.output import WRONG, print_json, print_pairs
from semcache.errors import InvalidInput
from semcache.responses.cache import Responses
from semcache.server.calls import statistics
from semcache.wiring.caches import RESPONSES

if TYPE_CHECKING:
    from semcache.commands.options import Commands


def add(commands: "Commands") -> None:
    """Add the commands about the plans that a cache holds."""
    for name, run in (("stats", _stats), ("list", _list), ("clear", _clear)):
        add_common(add_command(commands, name, run))
    options = add_command(commands, "remove", _remove)
    options.add_argument("entry", help="an id, or a key for every plan of it")
    add_common(options)
    options = add_command(commands, "evidence", _evidence)
    options.add_argument("--export", type=Path, metavar="FILE", help="write the evidence to FILE")
    options.add_argument(
        "--import", dest="taken", type=Path, metavar="FILE", help="add the evidence of FILE first"
    )
    options.add_argument("--count", type=int, default=10, help="words shown (default: 10)")
    add_common(options)
    for name, run, meaning in (("export", _export, "to write"), ("import", _import, "to read")):
        options = add_command(commands, name, run)
        options.add_argument("file", type=Path, help=meaning)
        add_common(options)


def _stats(options: argparse.Namespace) -> int:
    with existing_cache_of(options) as cache:
        shown = statistics(cache, options.tenant)
    if shown["hits"] and not shown["saved"] and not options.json:
        shown["saved"] = "no calls of a model: rules made the plans, or nobody told their cost"
    print_pairs(shown, as_json=options.json)
    return 0


def _list(options: argparse.Namespace) -> int:
    with existing_cache_of(options) as cache:
        entries = cache.entries(tenant=options.tenant)
    if options.json:
        print_json([{"id": entry.id, **entry.to_json()} for entry in entries])
        return 0
    for entry in entries:
        print(f"{entry.id}  {entry.label}  {entry.prompt!r}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    with existing_cache_of(options) as cache:
        entries = cache.entries(tenant=options.tenant)
        ids = [entry.id for entry in entries if options.entry in {entry.id, entry.label}]
        if not ids:
            raise InvalidInput(f"no entry is {options.entry!r}; `semcache list` shows id and key")
        removed = [cache.invalidate(tenant=options.tenant, id=entry) for entry in ids]
    return _tell_removed(options, removed)


def _clear(options: argparse.Namespace) -> int:
    with existing_cache_of(options) as cache:
        removed = cache.clear(tenant=options.tenant)
    # A plan that was cleared because it was wrong must not come back from what a model once said.
    answered = options.directory / RESPONSES
    if answered.exists():
        with closing(Responses.open(answered, encryption_key=encryption_key())) as responses:
            responses.clear()
    return _tell_removed(options, [removed])


def _tell_removed(options: argparse.Namespace, removed: Sequence[Removed]) -> int:
    """Print how many entries went, and why some have not yet; return the status."""
    pending = next((one.pending for one in removed if one.pending), "")
    told: JsonObject = {"removed": sum(removed)}
    print_pairs(told | {"pending": pending} if pending else told, as_json=options.json)
    return WRONG if pending else 0


def _evidence(options: argparse.Namespace) -> int:
    # Evidence may be the first thing that a new cache is given.
    with (cache_of if options.taken else existing_cache_of)(options) as cache:
        if options.taken:
            cache.import_evidence(options.taken, tenant=options.tenant)
        if options.export:
            cache.export_evidence(options.export, tenant=options.tenant)
        evidence = cache.evidence(tenant=options.tenant)
    tally = evidence.words
    seen = sorted({*tally.same, *tally.other}, key=lambda word: (-sum(tally.of(word)), word))
    harmless = {word: tally.of(word)[0] / sum(tally.of(word)) for word in seen[: options.count]}
    shown: JsonObject = {
        "labels": evidence.labels,
        "same": evidence.same,
        "harmless": dict[str, Json](harmless),
    }
    if options.json:
        print_json(shown)
        return 0
    print(f"{evidence.labels} labels, {evidence.same} with the plan of the nearest neighbor")
    for word, share in harmless.items():
        print(f"{share:5.0%} harmless  {word}")
    return 0


def _export(options: argparse.Namespace) -> int:
    with existing_cache_of(options) as cache:
        count = cache.export(options.file, tenant=options.tenant)
    print_pairs({"exported": count}, as_json=options.json)
    return 0


def _import(options: argparse.Namespace) -> int:
    with cache_of(options) as cache:
        count = cache.import_(options.file, tenant=options.tenant)
    print_pairs({"imported": count}, as_json=options.json)
    return 0
