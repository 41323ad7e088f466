"""Carrying: a tenant's entries and evidence go to files, and come from them."""

from pathlib import Path

from semcache.cache.checks import check_tenant
from semcache.cache.entry import Entry, from_record
from semcache.cache.evidence_file import read_evidence, write_evidence
from semcache.cache.keeping import Keeping
from semcache.cache.labels import Labels
from semcache.cache.shared import Shared
from semcache.cache.transfer import read_entries, write_entries
from semcache.errors import StoreCorrupt


class Carrying:
    """Reads and writes a tenant's entries and evidence as a whole. Safe from several threads."""

    def __init__(self, shared: Shared, keeping: Keeping, labels: Labels) -> None:
        self._shared = shared
        self._keeping = keeping
        self._labels = labels

    def entries(self, tenant: str) -> tuple[Entry, ...]:
        """Return the tenant's readable entries, oldest first.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        found = []
        for record in self._shared.store.scan(tenant):
            try:
                found.append(from_record(record))
            except StoreCorrupt as error:
                self._shared.trouble.failed(tenant, "store", error)
        return tuple(found)

    def export(self, path: Path, tenant: str) -> int:
        """Write the tenant's entries to a file; return how many. See `PlanCache.export`."""
        entries = self.entries(tenant)
        write_entries(path, entries)
        return len(entries)

    def import_(self, path: Path, tenant: str) -> int:
        """Keep the entries of a file; return how many were kept. See `PlanCache.import_`."""
        check_tenant(tenant)
        now = self._shared.clock.now()
        entries = read_entries(path, tenant=tenant)
        fresh = [e for e in entries if e.expires_s is None or e.expires_s > now]
        return sum(bool(self._keeping.put(entry)) for entry in fresh)

    def export_evidence(self, path: Path, tenant: str) -> int:
        """Write the tenant's evidence to a file; return from how many labels it is."""
        check_tenant(tenant)
        evidence = self._labels.evidence(tenant)
        write_evidence(path, evidence)
        return evidence.labels

    def import_evidence(self, path: Path, tenant: str) -> int:
        """Add the evidence of a file to the tenant's own; return from how many labels it is."""
        check_tenant(tenant)
        evidence = read_evidence(path, weights=self._labels.weights)
        self._labels.absorb(tenant, evidence)
        return evidence.labels
