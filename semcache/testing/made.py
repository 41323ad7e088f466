"""Made: where a contract has its stores from."""

from pathlib import Path

from semcache.ports import PlanStore


class Made:
    """What says how a store is made."""

    def make(self, tmp_path: Path) -> PlanStore:
        """Return a new store; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how a store is made")
