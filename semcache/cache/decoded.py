"""Decoded entries: those served last, held in little memory."""

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import cast

from semcache.binding.wording import Wording
from semcache.cache.entry import Entry, from_record
from semcache.canonical import Json, JsonObject
from semcache.forks import Lock
from semcache.ports import Record
from semcache.prompts.template import TemplateText

KEPT = 5_000
"""Entries that are kept: half of what a tenant has by default, those that were served last."""
_SHORT = 64
"""Characters of the longest text of a plan that is kept once for all entries that have it."""


class Decoded:
    """The entries served last, so that a hit reads and parses its record once. Thread-safe.

    What entries share is one object in all of them, so that one takes about 2 KB beside its plan.
    They are for serving: without their `examples`, which are not needed for it.
    """

    def __init__(self, keep: int = KEPT) -> None:
        self._keep = keep
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, str], tuple[int, Entry]] = OrderedDict()

    def known(self, tenant: str, entry: str, change: int) -> Entry | None:
        """Return the entry with that id as its record of that change holds it; None if unknown."""
        known = self._entries.get((tenant, entry))
        if known is None or known[0] != change:
            return None
        with contextlib.suppress(KeyError):  # another thread made room meanwhile
            self._entries.move_to_end((tenant, entry))
        return known[1]

    def entry(self, record: Record) -> Entry:
        """Return the entry of `record`, decoded anew if the record changed.

        Raises:
            StoreCorrupt: the body is not an entry of a version that we know.
        """
        known = self.known(record.tenant, record.id, record.change)
        if known is not None:
            return known
        entry = _lean(from_record(record))
        with self._lock:
            self._entries[record.tenant, record.id] = (record.change, entry)
            self._entries.move_to_end((record.tenant, record.id))
            if len(self._entries) > self._keep:
                self._entries.popitem(last=False)
        return entry


def _lean(entry: Entry) -> Entry:
    """Return the entry without examples; what other entries have too is the same object."""
    template, bare = _template(entry.template), entry.without_given
    if bare is not None:
        alike = repr(bare.slots) == repr(template.slots)  # `==` takes 1 for True
        bare = TemplateText(bare.text, template.slots) if alike else _template(bare)
    return replace(
        entry,
        template=template,
        without_given=bare,
        plan=replace(entry.plan, plan=cast(JsonObject, _interned(entry.plan.plan))),
        named=_texts(entry.named),
        operations=_texts(entry.operations),
        wordings=_wordings(tuple(entry.wordings.items())),
        examples=(),
    )


def _template(template: TemplateText) -> TemplateText:
    slots = [
        slot._replace(
            kind=sys.intern(slot.kind), name=sys.intern(slot.name), before=sys.intern(slot.before)
        )
        for slot in template.slots
    ]
    return TemplateText(template.text, tuple(slots))


def _interned(value: Json) -> Json:
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= _SHORT else value
    if isinstance(value, dict):
        return {sys.intern(key): _interned(below) for key, below in value.items()}
    return [_interned(below) for below in value] if isinstance(value, list) else value


@lru_cache(maxsize=2_000)
def _texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(sys.intern, texts))


@lru_cache(maxsize=2_000)
def _wordings(items: tuple[tuple[str, Wording], ...]) -> Mapping[str, Wording]:
    return {sys.intern(name): wording for name, wording in items}
