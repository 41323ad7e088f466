"""A view: what is known of a tenant in memory, and of each entry, derived from its records."""

import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import TypeAlias, TypeVar

from semcache.cache.entries.entry import Entry, from_record
from semcache.errors import InvalidVector, StoreCorrupt
from semcache.matching.gates import CandidatePair, Gates, Side, common, gate_key
from semcache.matching.model.features import NEIGHBORS, NearEntry
from semcache.matching.plan_groups import PlanGroups, PlanGroupSets, group_name, group_names
from semcache.matching.words.content import content
from semcache.ports import Neighbor, Record, VectorIndex
from semcache.process.forks import Lock
from semcache.prompts.parameter import Parameter
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.template import TemplateText
from semcache.prompts.tokens import is_slot, tokens
from semcache.prompts.unseen.alignment import Skeletons
from semcache.prompts.unseen.habits import LONGEST, MAX_CHARS, MAX_TEMPLATES, Habits

log = logging.getLogger(__name__)

_VERSIONS = itertools.count()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EntrySummary:
    """What the gates need of an entry, so that most refusals read nothing from the store."""

    side: Side
    label: str
    examples: str
    """Parameters that its prompts came with, as `pack_examples` packs them."""
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


def pack_examples(examples: Iterable[Sequence[Parameter]]) -> str:
    """Return parameters as JSON: a third of their size, and read only when an entry goes."""
    packed = [[[p.name, p.value, p.mention] for p in group] for group in examples]
    return json.dumps(packed, separators=(",", ":"), allow_nan=False)


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
        # Beside its user: a snapshot is made of views.
        from semcache.cache.view.snapshot import unpack_row  # noqa: PLC0415

        try:
            seen = unpack_row(row)
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
        from semcache.cache.view.snapshot import pack_row  # noqa: PLC0415 - as above

        for entry_id in ids:
            row = self._rows.get(entry_id)
            if isinstance(row, EntrySummary):
                packed = pack_row(row)
                with self._lock:
                    if self._rows.get(entry_id) is row:
                        self._rows[entry_id] = packed

    def rows(self) -> "Iterator[tuple[str, EntrySummary | bytes]]":
        """Yield each id with what is known of it, or its row where that is still packed."""
        yield from self._rows.items()


Place: TypeAlias = tuple[str, tuple[tuple[int, str], ...]]
"""A template text, and the words in those of its slots that keep their words."""


@dataclass(slots=True)
class View:
    """One tenant's derived state. Changed by one thread at a time, which `Views` sees to."""

    index: VectorIndex
    learned: LearnedValues = field(default_factory=LearnedValues)
    skeletons: Skeletons = field(default_factory=Skeletons)
    vocabulary: Counter[str] = field(default_factory=Counter)
    """Word → how many templates use it."""
    entries: EntrySummaries = field(default_factory=EntrySummaries)
    exact: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    """Template text and the words that its entries fix in it → their ids, newest change first."""
    fixed: dict[str, Counter[tuple[int, ...]]] = field(default_factory=dict)
    """Template text → which of its slots its entries fix, where they fix any, and how many do."""
    without_given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Template text without given values → ids of the entries with it, newest change first."""
    version: int = field(default_factory=_VERSIONS.__next__)
    """Another number after each change, and in no two views the same."""
    change: int = 0
    """Number of a change of the store that the view holds, with all before it."""

    groups: PlanGroupSets = field(default_factory=PlanGroupSets)
    """What makes plans comparable → the groups there, and the words that their entries use."""
    _habits: Habits | None = None

    @property
    def damaged(self) -> bool:
        """Whether something of its snapshot was found not to be what was written."""
        return self.entries.damaged or self.groups.damaged

    def habits(self) -> Habits:
        """Return what stands around and in the slots of the latest templates.

        Counted when somebody first asks: only a prompt that nothing else could serve does.
        """
        habits = self._habits
        if habits is None:
            self._habits = habits = Habits()
            try:
                self._count(habits)
            except BaseException:
                self._habits = None  # an interrupt must not leave half of them for ever
                raise
        return habits

    def _count(self, habits: Habits) -> None:
        latest, chars = [], 0
        for known in reversed(list(self.entries)[-MAX_TEMPLATES:]):
            seen = self.entries.get(known)
            if seen is None or len(seen.side.template.text) > LONGEST:
                continue
            chars += len(seen.side.template.text)
            if chars > MAX_CHARS:
                break
            latest.append((known, seen))
        for known, seen in reversed(latest):
            habits.add(known, seen.side.template, seen.parameters())

    def same_template(self, template: TemplateText) -> list[str]:
        """Return ids of the entries with this template text and the words that they fix in it."""
        ids = [*self.exact.get((template.text, ()), ())]
        for fixed in tuple(self.fixed.get(template.text, ())):
            ids += self.exact.get(_place(template, fixed), ())
        return ids

    def plan_groups(self, prints: tuple[str, str], *, given: bool) -> PlanGroups:
        """Return the groups of the entries with these `prints`: catalog and grounding."""
        return self.groups.of((given, *prints))

    def contested(self, seen: EntrySummary, *, given: bool) -> bool:
        """Return whether as many entries that say the same have another plan.

        Entries that fix words have a plan for each, and disagree on nothing.
        """
        groups = self.plan_groups(seen.prints, given=given)
        if seen.fixed or not groups.contradictions()[0]:
            return False
        words = content(seen.facing(given=given).template.text)
        return groups.contested(seen.group(given=given), words)

    def comparable(
        self, side: Side, neighbors: Sequence[Neighbor], gates: Gates, *, given: bool
    ) -> list[NearEntry]:
        """Return the first of `neighbors` that pass the gates that no evidence can argue with.

        `side`: that of the prompt, which came with values `given` or without.
        """
        found: list[NearEntry] = []
        known: dict[tuple[object, ...], bool] = {}
        for neighbor in neighbors:
            seen = self.entries.known(neighbor.id)
            if seen is None:
                continue
            if given:
                near = _near_given(seen, neighbor, side, gates)
            else:
                looks = gate_key(seen.side)  # most candidates are alike in what the gates look at
                admitted = known.get(looks)
                if admitted is None:
                    pair = CandidatePair(side, seen.side, neighbor.similarity)
                    admitted = known[looks] = gates.admit(pair)
                near = _near(seen.side.template, neighbor, seen.said) if admitted else None
            if near is not None:
                found.append(near)
                if len(found) == NEIGHBORS:
                    break
        return found

    def rivals(self, entry: Entry) -> bool:
        """Return whether entries with the template text of `entry` have another plan."""
        said = group_name(entry.plan, given=False)
        words = " ".join(content(entry.template.text))
        groups = self.plan_groups((entry.catalog, entry.grounding), given=False)
        return not groups.said_by(words).keys() <= {said}

    def put(self, record: Record, embedder: str) -> None:
        """Take in a record, replacing what was known under its id."""
        self.drop(record.id)
        self._take_in(record, embedder)
        seen = self.entries.get(record.id)
        if self._habits is not None and seen is not None:
            self._habits.add(record.id, seen.side.template, seen.parameters())
        self.version = next(_VERSIONS)  # last: who reads a prompt meanwhile has the old number

    def _take_in(self, record: Record, embedder: str) -> None:
        try:
            entry = from_record(record)
        except StoreCorrupt as error:
            log.warning("passed over: %s", error)
            return
        seen = _seen(entry, record.change)
        self.entries[record.id] = seen
        self.vocabulary.update(template_words(entry.template))
        place = _place(entry.template, seen.fixed)
        self.exact[place] = (record.id, *self.exact.get(place, ()))
        if seen.fixed:
            self.fixed.setdefault(entry.template.text, Counter())[seen.fixed] += 1
        if entry.without_given is not None:
            known = self.without_given.get(entry.without_given.text, ())
            self.without_given[entry.without_given.text] = (record.id, *known)
        self.skeletons.add(record.id, entry.template)
        for given in (False, True):
            plan_groups = self.plan_groups(seen.prints, given=given)
            plan_groups.add(
                seen.group(given=given), content(seen.facing(given=given).template.text)
            )
        for group in entry.examples:
            for parameter in group:
                self.learned.add(parameter)
        if record.vector is not None and record.embedder == embedder:
            self._add_vector(record)

    def _add_vector(self, record: Record) -> None:
        assert record.vector is not None  # noqa: S101 - the caller looked
        try:
            self.index.add(record.id, record.vector)
        except InvalidVector as error:
            log.warning("entry %r is found by exact keys only: %s", record.id, error)

    def drop(self, entry_id: str) -> None:
        """Forget an entry; an unknown id is fine."""
        seen = self.entries.pop(entry_id, None)
        if seen is None:
            return
        self._drop_words(seen.side.template)
        self._drop_place(entry_id, seen)
        for given in (False, True):
            plan_groups = self.plan_groups(seen.prints, given=given)
            plan_groups.remove(
                seen.group(given=given), content(seen.facing(given=given).template.text)
            )
        self.skeletons.remove(entry_id)
        if self._habits is not None:
            self._habits.remove(entry_id)
        for parameter in seen.parameters():
            self.learned.discard(parameter)
        self.index.remove(entry_id)
        self.version = next(_VERSIONS)

    def _drop_words(self, template: TemplateText) -> None:
        for word in template_words(template):
            self.vocabulary[word] -= 1
            if not self.vocabulary[word]:
                del self.vocabulary[word]

    def _drop_place(self, entry_id: str, seen: EntrySummary) -> None:
        place = _place(seen.side.template, seen.fixed)
        _drop_id(self.exact, place, entry_id)
        if seen.without_given is not None:
            _drop_id(self.without_given, seen.without_given.text, entry_id)
        fixed = self.fixed.get(seen.side.template.text)
        if seen.fixed and fixed is not None:
            fixed[seen.fixed] -= 1
            if not fixed[seen.fixed]:
                del fixed[seen.fixed]
            if not fixed:
                del self.fixed[seen.side.template.text]


def _drop_id(places: dict[_T, tuple[str, ...]], place: _T, entry_id: str) -> None:
    rest = tuple(known for known in places.get(place, ()) if known != entry_id)
    if rest:
        places[place] = rest
    else:
        places.pop(place, None)


def _place(template: TemplateText, fixed: tuple[int, ...]) -> Place:
    return template.text, tuple((i, template.slots[i].mention_text.casefold()) for i in fixed)


def _seen(entry: Entry, change: int) -> EntrySummary:
    said, given = group_names(entry.plan)
    return EntrySummary(
        side=entry.side,
        label=entry.label,
        examples=pack_examples(entry.examples),
        fixed=entry.fixed_slots,
        change=change,
        said=said,
        given=given,
        without_given=entry.without_given,
    )


def _near_given(
    seen: EntrySummary, neighbor: Neighbor, side: Side, gates: Gates
) -> NearEntry | None:
    pair = CandidatePair(side, seen.facing(given=True), neighbor.similarity)
    admitted = gates.admit(pair)
    return _near(common(pair).candidate.template, neighbor, seen.given) if admitted else None


def _near(template: TemplateText, neighbor: Neighbor, group: str) -> NearEntry:
    text = template.text
    return NearEntry(neighbor.id, neighbor.similarity, content(text), template.slots, group, text)


def template_words(template: TemplateText) -> frozenset[str]:
    """Return the words of a template text, slots apart."""
    return frozenset(word for word in tokens(template.text) if not is_slot(word))
