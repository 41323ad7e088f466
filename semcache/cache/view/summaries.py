"""Entries in memory: a summary of each that a view has, and those served last, decoded."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import Any, Self, cast

from semcache.binding.codecs import Wording
from semcache.cache.entries.entry import Entry, from_record
from semcache.canonical import Json, JsonObject
from semcache.errors import StoreCorrupt
from semcache.forks import Lock
from semcache.matching.gates import PinnedWords, Side
from semcache.memo import Lru, memoized
from semcache.ports import Record
from semcache.prompts.parameter import Parameter
from semcache.prompts.template import Slot, TemplateText


@dataclass(frozen=True, slots=True)
class EntrySummary:
    """What the gates need of an entry, so that most refusals read nothing from the store."""

    side: Side
    label: str
    examples: str
    """What `pack_examples` made of the parameters that its prompts came with."""
    fixed: tuple[int, ...]
    """Positions of the slots whose words must stay what they were."""
    change: int
    """Number of the change that wrote its record."""
    said: str
    """Group of its plan where values are what words of the prompt carry."""
    given: str
    """Group of its plan where the caller gives the values."""
    without_given: TemplateText | None = None
    """Template text without the values that came with the plan; None if none came."""

    @property
    def prints(self) -> tuple[str, str]:
        """Catalog and grounding that it was planned with."""
        return self.side.catalog, self.side.grounding

    def group(self, *, given: bool) -> str:
        """Return the group of its plan, for prompts that come with values `given` or without."""
        return self.given if given else self.said

    def facing(self, *, given: bool) -> Side:
        """Return its side of a pair with a prompt that comes with values `given` or without."""
        if not given or self.without_given is None:
            return self.side
        return self.side._replace(template=self.without_given)

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters that its prompts came with."""
        for group in json.loads(self.examples):
            for name, value, mention in group:
                yield Parameter(intern(name), value, mention)

    def pack(self) -> bytes:
        """Return it as one line of JSON."""
        template, names, catalog, grounding, _, held = self.side
        row: list[Json] = [*_packed(template), [*sorted(names)], catalog, grounding]
        row += [self.label, self.examples, [*self.fixed], self.change, self.said, self.given]
        row.append(_packed(self.without_given) if self.without_given is not None else None)
        row.append([[*each] for each in held])
        return json.dumps(row, separators=(",", ":"), allow_nan=False).encode()

    @classmethod
    def unpack(cls, line: bytes) -> Self:
        """Return what `pack` wrote.

        Raises:
            StoreCorrupt: it is not that.
        """
        # Beside its user: pydantic takes longer to load than all of semcache.
        from semcache.cache.view.snapshot import ROW, checked  # noqa: PLC0415

        row = checked(ROW, line)
        text, slots, names, catalog, grounding, label, examples = row[:7]
        fixed, change, said, given, bare, held = row[7:]
        return cls(
            Side(
                _unpacked(text, slots),
                _names(names),
                intern(catalog),
                intern(grounding),
                held=tuple([PinnedWords(*each) for each in held]),
            ),
            text if label == text else label,
            examples,
            fixed,
            change,
            intern(said),
            intern(given),
            None if bare is None else _unpacked(*bare),
        )


def _packed(template: TemplateText) -> list[Json]:
    return [template.text, [[*slot] for slot in template.slots]]


# Thousands of entries share a few dozen names, and `json` makes new ones for each.


def _unpacked(text: str, slots: list[Any]) -> TemplateText:
    return TemplateText(text, tuple([_slot(*slot) for slot in slots]))


def _slot(kind: str, name: str, before: str, *rest: Any) -> Slot:  # noqa: ANN401 - as JSON has it
    return Slot(intern(kind), intern(name), intern(before), *rest)


def pack_examples(examples: Iterable[Sequence[Parameter]]) -> str:
    """Return parameters as JSON: a third of their size, and read only when an entry goes."""
    packed = [[[p.name, p.value, p.mention] for p in group] for group in examples]
    return json.dumps(packed, separators=(",", ":"), allow_nan=False)


@memoized(2_000)
def _names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(intern, names))


class EntrySummaries(MutableMapping[str, EntrySummary]):
    """Id → what is known of that entry, in the order of their changes.

    Rows of a snapshot stay packed until they are asked for: 100,000 of them take seconds to unpack,
    and most are never asked for. Safe to read from several threads while one changes it.
    """

    def __init__(self, packed: dict[str, bytes] | None = None) -> None:
        self._rows: dict[str, EntrySummary | bytes] = {**packed} if packed else {}
        self._lock = Lock()
        self.damaged = False
        """Whether a row was found that is not what was written."""

    def __getitem__(self, entry_id: str) -> EntrySummary:
        """Return what is known of an entry."""
        seen = self.known(entry_id)
        if seen is None:
            raise KeyError(entry_id)
        return seen

    def known(self, entry_id: str) -> EntrySummary | None:
        """Return what is known of an entry; None if it is not there.

        Raises:
            StoreCorrupt: its row is not what was written.
        """
        row = self._rows.get(entry_id)
        if not isinstance(row, bytes):
            return row
        try:
            seen = EntrySummary.unpack(row)
        except StoreCorrupt:
            self.damaged = True
            raise
        with self._lock:
            if self._rows.get(entry_id) is row:  # else the entry was replaced or dropped meanwhile
                self._rows[entry_id] = seen
        return seen

    def __setitem__(self, entry_id: str, seen: EntrySummary) -> None:
        with self._lock:
            self._rows[entry_id] = seen

    def __delitem__(self, entry_id: str) -> None:
        with self._lock:
            del self._rows[entry_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def pack(self, ids: Iterable[str]) -> None:
        """Pack the rows of those of `ids` that are there: a third of the room of unpacked ones."""
        for entry_id in ids:
            row = self._rows.get(entry_id)
            if isinstance(row, EntrySummary):
                packed = row.pack()
                with self._lock:
                    if self._rows.get(entry_id) is row:
                        self._rows[entry_id] = packed

    def packed(self) -> Iterator[tuple[str, bytes]]:
        """Yield each id with its packed row; what is still packed costs nothing."""
        for entry_id, row in self._rows.items():
            yield entry_id, row if isinstance(row, bytes) else row.pack()


KEPT = 5_000
"""Entries that are kept: half of what a tenant has by default, those that were served last."""
_SHORT = 64
"""Characters of the longest text of a plan that is kept once for all entries that have it."""


class DecodedEntries:
    """The entries served last, so that a hit reads and parses its record once. Thread-safe.

    What entries share is one object in all of them, so that one takes about 2 KB beside its plan.
    They are for serving: without their `examples`, which are not needed for it.
    """

    def __init__(self, keep: int = KEPT) -> None:
        self._entries: Lru[tuple[str, str], tuple[int, Entry]] = Lru(keep)

    def known(self, tenant: str, entry: str, change: int) -> Entry | None:
        """Return the entry with that id as its record of that change holds it; None if unknown."""
        known = self._entries.use((tenant, entry))
        return None if known is None or known[0] != change else known[1]

    def forget(self, tenant: str | None, entry: str | None = None) -> None:
        """Drop an entry of the tenant; None: all of them, of the tenant or of all tenants."""
        if tenant is not None and entry is not None:
            self._entries.pop((tenant, entry))
        else:
            self._entries.forget(lambda key: tenant in {None, key[0]})

    def entry(self, record: Record) -> Entry:
        """Return the entry of `record`, decoded anew if the record changed.

        Raises:
            StoreCorrupt: the body is not an entry of a version that we know.
        """
        known = self.known(record.tenant, record.id, record.change)
        if known is not None:
            return known
        entry = _lean(from_record(record))
        self._entries.put((record.tenant, record.id), (record.change, entry))
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


@memoized(2_000)
def _texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(sys.intern, texts))


@memoized(2_000)
def _wordings(items: tuple[tuple[str, Wording], ...]) -> Mapping[str, Wording]:
    return {sys.intern(name): wording for name, wording in items}
