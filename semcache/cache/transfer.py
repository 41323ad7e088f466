"""Transfer: a tenant's entries and evidence as text, to carry them or to keep them in git.

    {"entries":2,"kind":"semcache plans","sha256":"…","version":2}
    {"catalog":"…",…}                                       one entry a line, keys sorted

Entries stand in the order of their template texts, so that exports differ where entries do.
`Transfer` is a part of `PlanCache`, which has its methods as its own.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry, expired, faults, from_json, from_record
from semcache.cache.query import check_tenant, path_of
from semcache.cache.reports import Statistics, statistics
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
from semcache.prompts.recognizers.learned_values import LearnedValues

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
    """What a tenant has, to look at and to carry: its entries, evidence and counts."""

    _context: CacheContext
    _intake: PlanIntake

    def entries(self, *, tenant: str = "default") -> tuple[Entry, ...]:
        """Return the tenant's readable entries that nobody took back, oldest first.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        found = []
        for record in self._context.store.scan(tenant):
            try:
                entry = from_record(record)
            except StoreCorrupt as error:
                self._context.health.failed(tenant, "store", error)
                continue
            if not self._context.corrections.hides(tenant, record.id, entry, record.change):
                found.append(entry)
        return tuple(found)

    def tenants(self) -> tuple[str, ...]:
        """Return the tenants that have entries, sorted."""
        return tuple(self._context.store.tenants())

    def stats(self, *, tenant: str = "default") -> Statistics:
        """Return the tenant's counts since its first lookup, over all processes.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        context = self._context
        counts, entries = context.counters.read(tenant), context.store.count(tenant)
        return statistics(counts, entries, context.labels.notes.certificate(tenant))

    def learned(self, *, tenant: str = "default") -> LearnedValues:
        """Return the values that the tenant's plans taught: words, their types, translations.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        return self._context.views.current(tenant).learned

    def evidence(self, *, tenant: str = "default") -> Evidence:
        """Return a copy of what the tenant's labels said of words, word pairs and hits.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        return self._context.labels.notes.written(tenant)

    def export_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's evidence to a file; return from how many labels it is.

        Raises:
            StoreUnavailable: the store cannot be read or the file cannot be written.
        """
        evidence = self.evidence(tenant=tenant)
        write_text(path_of(path), evidence_text(evidence))
        return evidence.labels

    def import_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Add the evidence of a file to the tenant's own; return from how many labels it is.

        Import only what you trust: it decides which differences are taken for harmless.

        Raises:
            StoreUnavailable, StoreCorrupt, NewerFormat: the file cannot be used; nothing changed.
        """
        check_tenant(tenant)
        notes = self._context.labels.notes
        evidence = read_evidence(path_of(path), weights=notes.weights)
        notes.absorb(tenant, evidence)
        return evidence.labels

    def export(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's entries to a file that `import_` reads; return how many.

        Raises:
            StoreUnavailable: the store cannot be read or the file cannot be written.
        """
        entries = self.entries(tenant=tenant)
        write_text(path_of(path), entries_text(entries))
        return len(entries)

    def import_(self, path: str | Path, *, tenant: str = "default") -> int:
        """Keep the entries of an exported file as the tenant's own; return how many were kept.

        Those that have expired since are left out. Import only what you trust: a plan decides
        which operations are called. Cost: one embedding an entry.

        Raises:
            StoreUnavailable, StoreCorrupt, NewerFormat: the file cannot be used; nothing was kept.
        """
        check_tenant(tenant)
        now = self._context.clock.now()
        entries = read_entries(path_of(path), tenant=tenant)
        fresh = [entry for entry in entries if not expired(entry, now)]
        if self._context.corrections.pending:
            self._context.corrections.retry()  # first, or what waits would take these back too
        return sum(bool(self._intake.put(entry)) for entry in fresh)
