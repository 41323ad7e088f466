"""Writing a file so that a crash leaves the old one or the new one, never a half."""

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


def write_aside(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    """Write `parts` to a file beside `path` (mode 0600), sync it, and rename it to `path`.

    Raises:
        OSError: the file cannot be written; `path` is as it was.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(aside).unlink()
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    # Without this a power cut can undo the rename; where directories cannot be opened (Windows)
    # there is nothing to sync.
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
