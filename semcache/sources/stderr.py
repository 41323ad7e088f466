"""What a server prints to its stderr: logged, and the last of it kept for errors."""

import logging
import os
import threading
from collections import deque
from typing import TextIO

log = logging.getLogger(__name__)

MAX_LAST_WORDS = 300  # characters of a dead server's stderr that are told


class Stderr:
    """Where a server's stderr goes: logged line by line, the last of it kept for errors."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=5)
        self._reader, writer = os.pipe()
        self.file: TextIO = os.fdopen(writer, "w", encoding="utf-8")
        """What the server writes to."""
        self._thread = threading.Thread(target=self._read, name="semcache-mcp-err", daemon=True)
        self._thread.start()

    def told(self) -> str:
        """Return the last words, to be appended to an error; empty if there were none."""
        words = " ".join(" ".join(self._lines).split())
        return f"; its last words: {words[-MAX_LAST_WORDS:]!r}" if words else ""

    def close(self) -> None:
        """Close our end, once the server has closed its own."""
        self.file.close()
        self._thread.join(1)

    def _read(self) -> None:
        with os.fdopen(self._reader, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(10_000):
                self._lines.append(line)
                log.debug("MCP server: %s", line.rstrip())
