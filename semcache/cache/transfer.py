"""Transfer: a tenant's entries and evidence as files of text, to carry them or to keep them in git.

    {"entries":2,"kind":"semcache plans","sha256":"…","version":2}
    {"catalog":"…",…}                                       one entry a line, keys sorted

Entries stand in the order of their template texts, so that exports differ where entries do.
"""

import hashlib
import os
import tempfile
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
    StoreUnavailable,
)
from semcache.file_errors import unreadable, unwritable
from semcache.matching.evidence import FORMAT, Evidence

KIND = "semcache plans"
EXPECTED = "what `semcache export` writes"
VERSION = 2


def write_entries(path: Path, entries: Sequence[Entry]) -> None:
    """Write `entries` to `path`, in place of what was there, once all of them are written.

    Tenant and vectors stay behind: the reader names its own tenant and has its own embedder.

    Raises:
        StoreUnavailable: the file cannot be written; what was there stays.
    """
    ordered = sorted(entries, key=lambda entry: (entry.template.text, entry.id))
    body = "".join(f"{dumps(entry.to_json())}\n" for entry in ordered)
    head: JsonObject = {
        "entries": len(entries),
        "kind": KIND,
        "sha256": hashlib.sha256(body.encode()).hexdigest(),
        "version": VERSION,
    }
    try:
        replace_text(path, f"{dumps(head)}\n{body}")
    except OSError as error:
        raise StoreUnavailable(unwritable(path, error)) from error


def read_entries(path: Path, *, tenant: str) -> tuple[Entry, ...]:
    """Return the entries in the file at `path` as entries of `tenant`; all of them or none.

    Raises:
        StoreUnavailable: the file cannot be read.
        StoreCorrupt: it is not what `write_entries` wrote.
        NewerFormat: a later semcache wrote it.
    """
    name = repr(str(path))
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        _check(loads(head.decode(), what="its first line"), body, name)
        lines = body.decode().split("\n")[:-1]
    except OSError as error:
        raise StoreUnavailable(unreadable(path, error, expected=EXPECTED)) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(unreadable(path, error, expected=EXPECTED)) from error
    except InvalidJson as error:
        raise StoreCorrupt(_strange(name, f": {error}")) from error
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


def replace_text(path: Path, text: str) -> None:
    """Write aside and rename, so that a crash leaves the old file or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


EVIDENCE_KIND = "semcache evidence"
EVIDENCE_EXPECTED = "what `semcache evidence --export` writes"


def write_evidence(path: Path, evidence: Evidence) -> None:
    """Write `evidence` to `path`, in place of what was there, once all of it is written.

    It holds words of prompts with their values taken out, and sums; no prompt and no plan.

    Raises:
        StoreUnavailable: the file cannot be written; what was there stays.
    """
    document: Json = {"kind": EVIDENCE_KIND, "version": FORMAT, "evidence": evidence.to_json()}
    try:
        replace_text(path, dumps(document) + "\n")
    except OSError as error:
        raise StoreUnavailable(unwritable(path, error)) from error


def read_evidence(path: Path, *, weights: int) -> Evidence:
    """Return the evidence in the file at `path`, for a prior with so many `weights`.

    Raises:
        StoreUnavailable: the file cannot be read.
        StoreCorrupt: it is not what `write_evidence` wrote, or it belongs to another prior.
        NewerFormat: a later semcache wrote it.
    """
    name = repr(str(path))
    try:
        document = loads(path.read_text(encoding="utf-8"), what="it")
    except OSError as error:
        raise StoreUnavailable(unreadable(path, error, expected=EVIDENCE_EXPECTED)) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(unreadable(path, error, expected=EVIDENCE_EXPECTED)) from error
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
        write_entries(path, entries)
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
        write_evidence(path, evidence)
        return evidence.labels

    def import_evidence(self, path: Path, tenant: str) -> int:
        """Add the evidence of a file to the tenant's own; return from how many labels it is."""
        check_tenant(tenant)
        evidence = read_evidence(path, weights=self._context.labels.weights)
        self._context.labels.absorb(tenant, evidence)
        return evidence.labels
