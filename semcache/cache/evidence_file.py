"""Evidence as a file: what a tenant's labels said, to look at or to carry to another cache."""

from pathlib import Path
from typing import cast

from semcache.cache.transfer import replace_text
from semcache.canonical import Json, dumps, loads
from semcache.errors import InvalidJson, NewerFormat, StoreCorrupt, StoreUnavailable
from semcache.file_errors import unreadable, unwritable
from semcache.matching.evidence import FORMAT, Evidence

KIND = "semcache evidence"
EXPECTED = "what `semcache evidence --export` writes"


def write_evidence(path: Path, evidence: Evidence) -> None:
    """Write `evidence` to `path`, in place of what was there, once all of it is written.

    It holds words of prompts with their values taken out, and sums; no prompt and no plan.

    Raises:
        StoreUnavailable: the file cannot be written; what was there stays.
    """
    document: Json = {"kind": KIND, "version": FORMAT, "evidence": evidence.to_json()}
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
        raise StoreUnavailable(unreadable(path, error, expected=EXPECTED)) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(unreadable(path, error, expected=EXPECTED)) from error
    except InvalidJson as error:
        raise StoreCorrupt(f"{name} holds no evidence: {error}; expected {EXPECTED}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise StoreCorrupt(f"{name} holds no evidence; expected {EXPECTED}")
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
