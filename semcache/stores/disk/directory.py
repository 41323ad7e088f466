"""The directory of a disk store: whose it is, and what is in the way of opening it."""

import contextlib
import os
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import Json, dumps
from semcache.errors import ForeignDirectory, InvalidJson, NewerFormat, StoreUnavailable
from semcache.files import write_aside
from semcache.schemas import STRICT, read
from semcache.stores.disk.failures import no_room
from semcache.stores.disk.sidecar import CORRECTIONS

MANIFEST = "manifest.json"
FORMAT = "semcache-store"
VERSION = 2  # raised when an older semcache could not read what a newer one writes
DATABASE = "semcache.db"


def claim(directory: Path) -> int:
    """Make `directory` if it is missing, mark it as ours if it is empty, else check that it is.

    Return the version that it has, `VERSION` at most. What is made can be read by its owner alone:
    plans hold the values of prompts.

    Raises:
        ForeignDirectory: a file, or a directory with something that semcache did not write.
        NewerFormat: written by a later semcache.
        StoreUnavailable: the directory cannot be made, read or written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = sorted(path.name for path in directory.iterdir())
        if MANIFEST in names:
            found = _check(directory, (directory / MANIFEST).read_bytes())
        # A process that is claiming it at this moment, died on the way, or waits for room, left
        # such a file, or the folder of its corrections.
        elif foreign := [n for n in names if not n.startswith(MANIFEST) and n != CORRECTIONS]:
            raise ForeignDirectory(
                f"{str(directory)!r} is not a semcache directory: it has no {MANIFEST!r} but "
                f"{foreign[:3]!r}; name an empty or a new directory"
            )
        else:
            mark(directory)
            found = VERSION
        if found == VERSION:
            _begin(directory / DATABASE)
    except (FileExistsError, NotADirectoryError) as error:
        raise ForeignDirectory(
            f"{str(directory)!r} is not a directory; name an empty or a new one"
        ) from error
    except OSError as error:
        raise StoreUnavailable(
            f"the store {str(directory)!r} cannot be opened for writing: {error}",
            passing=no_room(error),
        ) from error
    return found


def _begin(database: Path) -> None:
    """Make the file of the database, so that only its owner can read it; one that is there stays.

    One that is there is not even opened: closing it again would let go of every lock that SQLite
    has on it in this process (POSIX locks are the process's), and another process would take itself
    for the last one, and remove the log that this one writes to.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def existing(directory: Path) -> Path:
    """Return `directory`, if a cache is kept in it; nothing is made.

    For what is of no use on a cache that it has just made.

    Raises:
        ForeignDirectory: nothing of semcache is there: it is rather a slip of the pen.
        StoreUnavailable: it cannot be looked into.
    """
    try:
        if (directory / MANIFEST).is_file():
            return directory
        inside = list(directory.iterdir())
        what = f"it has no {MANIFEST!r}" if inside else "it is empty"
    except FileNotFoundError:
        what, inside = "there is no such directory", []
    except NotADirectoryError:
        what, inside = "it is a file", []
    except OSError as error:
        raise StoreUnavailable(f"{str(directory)!r} cannot be looked into: {error}") from error
    raise ForeignDirectory(
        f"there is no cache at {str(directory)!r}: {what}{_beside(directory, inside)}; name the "
        "directory of one (the first plan that is stored makes it)"
    )


def _beside(directory: Path, inside: list[Path]) -> str:
    """Return, for an error, which cache in or beside `directory` may have been meant."""
    try:
        places = {*directory.parent.iterdir(), *inside}
        names = sorted(str(place) for place in places if (place / MANIFEST).is_file())
    except OSError:
        return ""
    near = get_close_matches(str(directory), names, n=1) or (names if len(names) == 1 else [])
    return f" (there is one at {near[0]!r})" if near else ""


def require(directory: Path) -> None:
    """Return if `directory` is ours and holds a database; nothing is written.

    Raises:
        ForeignDirectory: it is not ours.
        NewerFormat: written by a later semcache.
        StoreUnavailable: there is nothing, or it cannot be read.
    """
    try:
        found = _check(directory, (directory / MANIFEST).read_bytes())
        if found == VERSION:
            (directory / DATABASE).stat()
    except OSError as error:
        raise StoreUnavailable(
            f"there is no store in {str(directory)!r} that could be served frozen: {error}; "
            "fill one without `frozen` first"
        ) from error
    if found < VERSION:
        raise StoreUnavailable(
            f"{str(directory)!r} was written by an earlier semcache, and cannot be brought to this "
            "version where nothing may be written; open it once without `frozen`"
        )


def mark(directory: Path) -> None:
    """Say in the manifest that `directory` is of this version."""
    manifest: Json = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "format": FORMAT,
        "version": VERSION,
    }
    write_aside(directory / MANIFEST, [dumps(manifest).encode() + b"\n"])


@with_config(STRICT)
class _StoreManifestDoc(TypedDict):
    format: Literal["semcache-store"]
    version: Annotated[int, Field(ge=1)]


_SCHEMA: TypeAdapter[_StoreManifestDoc] = TypeAdapter(_StoreManifestDoc)


def _check(directory: Path, content: bytes) -> int:
    try:
        version = read(_SCHEMA, content, what=repr(str(directory / MANIFEST)))["version"]
    except InvalidJson as error:
        raise ForeignDirectory(
            f"{error}; this is no manifest of semcache: name an empty or a new directory"
        ) from error
    if version > VERSION:
        raise NewerFormat(
            f"{str(directory)!r} has format {version}; this semcache reads up to {VERSION}; "
            "upgrade semcache, or name another directory"
        )
    return version


def set_aside(directory: Path) -> Path:
    """Move the database of `directory` into a new folder in it, and return that folder.

    Raises:
        StoreUnavailable: the files cannot be moved.
    """
    try:
        number = sum(1 for _ in directory.glob("damaged-*")) + 1
        folder = directory / f"damaged-{number}"
        folder.mkdir(mode=0o700)
        for path in directory.glob(f"{DATABASE}*"):
            path.rename(folder / path.name)
    except OSError as error:
        raise StoreUnavailable(
            f"the damaged database in {str(directory)!r} cannot be moved aside: {error}"
        ) from error
    return folder
