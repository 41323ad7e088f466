"""Recent prompts as they were read, so that one asked again is not read again."""

from collections import OrderedDict

from semcache.cache.asked import Asked
from semcache.cache.tool_sets import ToolSet
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
        self._read: OrderedDict[tuple[str, ...], tuple[int, Asked]] = OrderedDict()

    def get(
        self, tenant: str, text: str, grounding: str, version: int, tools: ToolSet
    ) -> Asked | None:
        """Return the prompt as read with that version of the view and `tools`; None if not."""
        known = self._read.get((tenant, text, grounding, tools.fingerprint))
        if known is None or known[0] != version or known[1].tools is not tools:
            return None
        return known[1]

    def put(self, asked: Asked, version: int) -> None:
        """Keep a prompt as it was read; the one kept longest makes room."""
        if len(asked.text) > MOST_CHARS:
            return
        with self._lock:
            self._read[asked.tenant, asked.text, asked.grounding, asked.catalog] = (version, asked)
            if len(self._read) > self._keep:
                self._read.popitem(last=False)
