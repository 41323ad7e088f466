"""A store that keeps nothing readable: any other store, with all of it encrypted on the way in.

What stays visible: how many tenants, records and notes there are, how long they are, when they are
written, used and expire, and which answer to the same key. Eviction and bounds need that.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from semcache.canonical import Json, dumps, loads
from semcache.errors import InvalidJson, StoreCorrupt, WrongKey
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, PlanStore, Put, Record, Room, Use
from semcache.stores.cipher import Cipher
from semcache.stores.records import check_record, check_text, decode, encode

MARK_TENANT, MARK = "\ncipher", "cipher"
"""Where a store says that it is encrypted; no caller's tenant has a line break."""

BLOCK = 512
"""Bytes: records are as long as a multiple of it."""
_PAD = "\0"  # no JSON text ends with it

_log = logging.getLogger(__name__)


def unlocked(store: PlanStore, key: str, *, what: str) -> PlanStore:
    """Return `store` as one who has `key` sees it; without a key as it is.

    A store with nothing in it becomes an encrypted one. `what` names it in errors.

    Raises:
        WrongKey: it was encrypted with another key, or is encrypted and there is no key, or there
            is one and what it holds is not encrypted. Nothing was changed.
        InvalidSettings: `key` is not 32 bytes as base64.
        MissingExtra: the extra `encryption` is not installed.
    """
    mark = store.get_note(MARK_TENANT, MARK)
    if not key:
        if mark is not None:
            raise WrongKey(
                f"{what} is encrypted; give its key as `encryption_key`, or in the environment as "
                "SEMCACHE_ENCRYPTION_KEY"
            )
        return store
    cipher = Cipher(key)
    if mark is None:
        _begin(store, cipher, what)
        mark = store.get_note(MARK_TENANT, MARK)
    if _check(mark) != cipher.check:
        raise WrongKey(f"{what} was encrypted with another key; give that one")
    return EncryptedStore(store, cipher)


def _begin(store: PlanStore, cipher: Cipher, what: str) -> None:
    if store.last_change():
        raise WrongKey(
            f"{what} holds plans that are not encrypted; leave the key out, or copy them to a new "
            "place with a key by `semcache migrate`"
        )
    store.clear()  # counts of lookups that found nothing
    store.update_note(MARK_TENANT, MARK, lambda mark: mark or _mark(cipher))


def _mark(cipher: Cipher) -> str:
    return dumps({"cipher": "aes-256-gcm", "version": 1, "check": cipher.check})


def _check(mark: str | None) -> Json:
    try:
        told = loads(mark, what="the mark of the cipher") if mark else None
    except InvalidJson:
        return None
    return told.get("check") if isinstance(told, dict) else None


class EncryptedStore:
    """Any `ports.PlanStore`, encrypted: bodies, vectors, notes, and the names of tenants and ids.

    Keys, labels, notes and leases are found by their HMAC. Records are bound to their tenant and
    id: in another's place they cannot be read. Vectors are kept with the bodies, so a store that
    could search them searches nothing; indexes are made in memory.
    """

    def __init__(self, store: PlanStore, cipher: Cipher) -> None:
        self._store = store
        self._cipher = cipher

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record` encrypted; see `ports.PlanStore`. Bounds count encrypted bytes."""
        check_record(record)
        put = self._store.put(self._sealed(record), bounds=bounds, over=over)
        return replace(
            put,
            evicted=self._ids(put.evicted),
            elsewhere={self._tenant_of(t): self._ids(ids) for t, ids in put.elsewhere.items()},
        )

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used."""
        self._store.use(
            self._tenant(tenant), {self._id(i): n for i, n in uses.items()}, now_s=now_s
        )

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""
        found = self._store.uses(self._tenant(tenant))
        return {self._id_of(name): use for name, use in found.items()}

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records take, encrypted as they are."""
        return self._store.room(None if tenant is None else self._tenant(tenant))

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name`; return whether it has it."""
        check_text(tenant, name, holder)
        digest = self._cipher.digest("lease", name)
        return self._store.lease(self._tenant(tenant), digest, holder, ttl_s=ttl_s, now_s=now_s)

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back."""
        self._store.release(self._tenant(tenant), self._cipher.digest("lease", name), holder)

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: it is not what was written there.
        """
        record = self._store.get(self._tenant(tenant), self._id(id))
        return None if record is None else self._opened(tenant, id, record)

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none."""
        digest = self._cipher.digest("key", key)
        return list(self._readable(tenant, self._store.find(self._tenant(tenant), digest)))

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        return self._store.remove(self._tenant(tenant), [self._id(one) for one in ids])

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        return list(self._readable(tenant, self._store.scan(self._tenant(tenant))))

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time; see `ports.PlanStore`."""
        for page in self._store.pages(self._tenant(tenant), size=size):
            yield list(self._readable(tenant, page))

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        digest = self._cipher.digest("label", label)
        return sorted(self._ids(self._store.labelled(self._tenant(tenant), digest)))

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        return self._store.count(self._tenant(tenant))

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        return sorted(self._tenant_of(name) for name in self._store.tenants())

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed. Cheap."""
        return self._store.last_change()

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some cannot be told."""
        changes = self._store.changes(since)
        if changes is None:
            return None
        try:
            return [
                replace(change, tenant=self._tenant_of(change.tenant), id=self._id_of(change.id))
                for change in changes
            ]
        except StoreCorrupt:
            return None

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: it is not what was written there.
        """
        check_text(tenant, name)
        sealed = self._store.get_note(self._tenant(tenant), self._cipher.digest("note", name))
        return None if sealed is None else self._note(tenant, name, sealed)

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction; one not readable counts as None."""

        def changed(sealed: str | None) -> str | None:
            text = change(None if sealed is None else self._note_safely(tenant, name, sealed))
            if text is None:
                return None
            check_text(text)
            return self._cipher.encrypt(text, _place("note", tenant, name))

        check_text(tenant, name)
        digest = self._cipher.digest("note", name)
        self._store.update_note(self._tenant(tenant), digest, changed)

    def _note(self, tenant: str, name: str, sealed: str) -> str:
        try:
            return self._cipher.decrypt(sealed, _place("note", tenant, name))
        except ValueError as error:
            raise StoreCorrupt(f"note {name!r} of tenant {tenant!r}: {error}") from error

    def _note_safely(self, tenant: str, name: str, sealed: str) -> str | None:
        try:
            return self._note(tenant, name, sealed)
        except StoreCorrupt as error:
            _log.warning("%s; it begins anew", error)
            return None

    def clear(self, tenant: str | None = None) -> int:
        """Remove records and notes of the tenant, or of all (None); return how many records."""
        if tenant is not None:
            return self._store.clear(self._tenant(tenant))
        removed = self._store.clear()
        self._store.put_note(MARK_TENANT, MARK, _mark(self._cipher))
        return removed

    def close(self) -> None:
        """Release files and connections; calling it twice is fine."""
        self._store.close()

    # Records -------------------------------------------------------------------------------

    def _sealed(self, record: Record) -> Record:
        place = _place("record", record.tenant, record.id)
        return replace(
            record,
            tenant=self._tenant(record.tenant),
            id=self._id(record.id),
            keys=tuple(self._cipher.digest("key", key) for key in record.keys),
            labels=tuple(self._cipher.digest("label", label) for label in record.labels),
            body=self._cipher.encrypt(_padded(encode(record)), place),
            vector=None,
            embedder="",
        )

    def _opened(self, tenant: str, id: str, record: Record) -> Record:  # noqa: A002 - see above
        try:
            text = self._cipher.decrypt(record.body, _place("record", tenant, id))
            return replace(decode(text.rstrip(_PAD).encode()), change=record.change)
        except ValueError as error:
            raise StoreCorrupt(
                f"record {id!r} of tenant {tenant!r} is not what was written: {error}; remove it"
            ) from error

    def _readable(self, tenant: str, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            try:
                yield self._opened(tenant, self._id_of(record.id), record)
            except StoreCorrupt as error:
                _log.warning("passed over: %s", error)

    # Names ---------------------------------------------------------------------------------

    def _tenant(self, tenant: str) -> str:
        check_text(tenant)
        return self._cipher.name("tenant", tenant)

    def _tenant_of(self, name: str) -> str:
        return self._named("tenant", name)

    def _id(self, id: str) -> str:  # noqa: A002 - the word of the record
        check_text(id)
        return self._cipher.name("id", id)

    def _id_of(self, name: str) -> str:
        return self._named("id", name)

    def _ids(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._id_of(name) for name in names)

    def _named(self, kind: str, name: str) -> str:
        try:
            return self._cipher.named(kind, name)
        except ValueError as error:
            raise StoreCorrupt(f"the {kind} {name[:40]!r} is not of this store: {error}") from error


def _padded(text: str) -> str:
    """Return `text` with the next length that many have: a length alone can tell what it is."""
    return text + _PAD * (-len(text.encode()) % BLOCK)


def _place(*parts: str) -> str:
    return json.dumps(parts)
