"""Recent prompts as they were read, so that one asked again is not read again."""

from collections import OrderedDict

from semcache.cache.asked import Asked
from semcache.forks import Lock

MOST_CHARS = 1_000
"""Characters of the longest prompt that is kept: longer ones are rarely asked again."""


class Recent:
    """The last prompts without given values, as they were read. Thread-safe.

    How a prompt is read depends on the values that a tenant's view has learned, so that what is
    kept is good for that version of the view alone. It keeps about 2 KB a prompt.
    """

    def __init__(self, keep: int = 2048) -> None:
        self._keep = keep
        self._lock = Lock()
        self._read: OrderedDict[tuple[str, str, str], tuple[int, Asked]] = OrderedDict()

    def get(self, tenant: str, text: str, grounding: str, version: int) -> Asked | None:
        """Return the prompt as it was read with that version of the view; None if it was not."""
        known = self._read.get((tenant, text, grounding))
        return known[1] if known is not None and known[0] == version else None

    def put(self, asked: Asked, version: int) -> None:
        """Keep a prompt as it was read; the one kept longest makes room."""
        if len(asked.text) > MOST_CHARS:
            return
        with self._lock:
            self._read[asked.tenant, asked.text, asked.grounding] = (version, asked)
            if len(self._read) > self._keep:
                self._read.popitem(last=False)
