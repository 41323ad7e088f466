from pathlib import Path

from semcache.ports import ResponseStore
from semcache.stores.memory_responses import MemoryResponses
from semcache.testing import ResponseStoreContract


# specs: B-4, B-5
class TestMemoryResponses(ResponseStoreContract):
    def make(self, tmp_path: Path) -> ResponseStore:
        return MemoryResponses()
