"""Transfer: a tenant's entries and evidence as text, to carry them or to keep them in git.

    {"entries":2,"kind":"semcache plans","sha256":"…","version":2}
    {"catalog":"…",…}                                       one entry a line, keys sorted

Entries stand in the order of their template texts, so that exports differ where entries do.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry, expired, faults, from_json, from_record
from semcache.cache.query import check_tenant
from semcache.cache.store_plan import PlanIntake
from semcache.canonical import Json, JsonObject, dumps, loads, plain
from semcache.errors import (
    BindingError,
    InvalidInput,
    InvalidJson,
    NewerFormat,
    StoreCorrupt,
)
from semcache.files import read_content, text_of, write_text
from semcache.matching.evidence import FORMAT, Evidence

KIND = "semcache plans"
EXPECTED = "what `semcache export` writes"
VERSION = 2


def entries_text(entries: Sequence[Entry]) -> str:
    """Return `entries` as text.

    Tenant and vectors stay behind: the reader names its own tenant and has its own embedder.
    """
    ordered = sorted(entries, key=lambda entry: (entry.template.text, entry.id))
    body = "".join(f"{dumps(entry.to_json())}\n" for entry in ordered)
    head: JsonObject = {
        "entries": len(entries),
        "kind": KIND,
        "sha256": hashlib.sha256(body.encode()).hexdigest(),
        "version": VERSION,
    }
    return f"{dumps(head)}\n{body}"


def read_entries(path: Path, *, tenant: str) -> tuple[Entry, ...]:
    """Return the entries in the file at `path` as entries of `tenant`; all of them or none.

    Raises:
        StoreUnavailable: the file cannot be read.
        StoreCorrupt: it does not hold what `entries_text` gives.
        NewerFormat: a later semcache wrote it.
    """
    name = repr(str(path))
    head, _, body = read_content(path, expected=EXPECTED).partition(b"\n")
    try:
        _check(loads(text_of(head, path, expected=EXPECTED), what="its first line"), body, name)
    except InvalidJson as error:
        raise StoreCorrupt(_strange(name, f": {error}")) from error
    lines = text_of(body, path, expected=EXPECTED).split("\n")[:-1]
    try:
        return tuple(_entry(tenant, line, number) for number, line in enumerate(lines, start=2))
    except (InvalidInput, BindingError) as error:
        raise StoreCorrupt(
            f"{name} has an entry that cannot be used: {error}; nothing of the file was taken"
        ) from error


def _entry(tenant: str, line: str, number: int) -> Entry:
    what = f"line {number}"
    entry = from_json(tenant, plain(loads(line, what=what), what=what), what=what)
    wrong = next(faults(entry), None)
    if wrong is not None:
        raise InvalidInput(f"{what}: {wrong}")
    return entry


def _check(head: Json, body: bytes, name: str) -> None:
    if not isinstance(head, dict) or head.get("kind") != KIND:
        raise StoreCorrupt(_strange(name))
    version = head.get("version")
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(f"{name} has version {version}; this semcache reads {VERSION}: update it")
    if version != VERSION:
        raise StoreCorrupt(f"{name} has version {version!r}; expected {VERSION}: export it anew")
    if head.get("sha256") != hashlib.sha256(body).hexdigest():
        raise StoreCorrupt(
            f"{name} is not what was written: it was cut short or edited after its checksum was "
            "made; export it anew"
        )


def _strange(name: str, why: str = "") -> str:
    return (
        f"{name} holds no exported plans{why}; expected {EXPECTED} (prompts and plans of your own, "
        "one a line, are taken by `semcache warm`)"
    )


EVIDENCE_KIND = "semcache evidence"
EVIDENCE_EXPECTED = "what `semcache evidence --export` writes"


def evidence_text(evidence: Evidence) -> str:
    """Return `evidence` as text.

    It holds words of prompts with their values taken out, and sums; no prompt and no plan.
    """
    document: Json = {"kind": EVIDENCE_KIND, "version": FORMAT, "evidence": evidence.to_json()}
    return dumps(document) + "\n"


def read_evidence(path: Path, *, weights: int) -> Evidence:
    """Return the evidence in the file at `path`, for a prior with so many `weights`.

    Raises:
        StoreUnavailable: the file cannot be read.
        StoreCorrupt: it is not what `evidence_text` gives, or it belongs to another prior.
        NewerFormat: a later semcache wrote it.
    """
    name = repr(str(path))
    content = read_content(path, expected=EVIDENCE_EXPECTED)
    try:
        document = loads(text_of(content, path, expected=EVIDENCE_EXPECTED), what="it")
    except InvalidJson as error:
        raise StoreCorrupt(
            f"{name} holds no evidence: {error}; expected {EVIDENCE_EXPECTED}"
        ) from error
    if not isinstance(document, dict) or document.get("kind") != EVIDENCE_KIND:
        raise StoreCorrupt(f"{name} holds no evidence; expected {EVIDENCE_EXPECTED}")
    _check_version(document.get("version"), name)
    try:
        return Evidence.from_json(document.get("evidence"), weights=weights)
    except InvalidJson as error:
        raise StoreCorrupt(
            f"{name} holds evidence that this version cannot use: {error}; without it a tenant "
            "starts from the prior that ships with the package"
        ) from error


def _check_version(version: Json, name: str) -> None:
    if isinstance(version, int) and version > FORMAT:
        raise NewerFormat(f"{name} has version {version}; this semcache reads {FORMAT}: update it")
    if version != FORMAT:
        found = cast("str | int | None", version)
        raise StoreCorrupt(
            f"{name} has version {found!r}; this semcache reads {FORMAT}: export it anew, or go "
            "without: a tenant starts from the prior that ships with the package"
        )


class Transfer:
    """Reads and writes a tenant's entries and evidence as a whole. Safe from several threads."""

    def __init__(self, context: CacheContext, intake: PlanIntake) -> None:
        self._context = context
        self._intake = intake

    def entries(self, tenant: str) -> tuple[Entry, ...]:
        """Return the tenant's readable entries, oldest first.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        found = []
        for record in self._context.store.scan(tenant):
            try:
                found.append(from_record(record))
            except StoreCorrupt as error:
                self._context.health.failed(tenant, "store", error)
        return tuple(found)

    def export(self, path: Path, tenant: str) -> int:
        """Write the tenant's entries to a file; return how many. See `PlanCache.export`."""
        entries = self.entries(tenant)
        write_text(path, entries_text(entries))
        return len(entries)

    def import_(self, path: Path, tenant: str) -> int:
        """Keep the entries of a file; return how many were kept. See `PlanCache.import_`."""
        check_tenant(tenant)
        now = self._context.clock.now()
        entries = read_entries(path, tenant=tenant)
        fresh = [entry for entry in entries if not expired(entry, now)]
        return sum(bool(self._intake.put(entry)) for entry in fresh)

    def export_evidence(self, path: Path, tenant: str) -> int:
        """Write the tenant's evidence to a file; return from how many labels it is."""
        check_tenant(tenant)
        evidence = self._context.labels.evidence(tenant)
        write_text(path, evidence_text(evidence))
        return evidence.labels

    def import_evidence(self, path: Path, tenant: str) -> int:
        """Add the evidence of a file to the tenant's own; return from how many labels it is."""
        check_tenant(tenant)
        evidence = read_evidence(path, weights=self._context.labels.weights)
        self._context.labels.absorb(tenant, evidence)
        return evidence.labels
