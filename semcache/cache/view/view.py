"""A view: what is known of a tenant in memory, derived from its records."""

import itertools
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from semcache.cache.entries.entry import Entry, from_record
from semcache.cache.view.summaries import EntrySummaries, EntrySummary, pack_examples
from semcache.errors import InvalidVector, StoreCorrupt
from semcache.matching.gates import CandidatePair, Gates, Side, common, gate_key
from semcache.matching.model.features import NEIGHBORS, NearEntry
from semcache.matching.plan_groups import PlanGroups, PlanGroupSets, group_name, group_names
from semcache.matching.words.content import content
from semcache.ports import Neighbor, Record, VectorIndex
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.template import TemplateText
from semcache.prompts.tokens import is_slot, tokens
from semcache.prompts.unseen.alignment import Skeletons
from semcache.prompts.unseen.habits import LONGEST, MAX_CHARS, MAX_TEMPLATES, Habits

log = logging.getLogger(__name__)

_VERSIONS = itertools.count()
_T = TypeVar("_T")


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

    def same_without_given(self, template: TemplateText) -> tuple[str, ...]:
        """Return ids of the entries with this template text once their given values are out."""
        return self.without_given.get(template.text, ())

    def same_template(self, template: TemplateText) -> list[str]:
        """Return ids of the entries with this template text and the words that they fix in it."""
        ids = [*self.exact.get(_place(template, ()), ())]
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
        if seen.fixed:
            return False
        words = content(seen.facing(given=given).template.text)
        return self.plan_groups(seen.prints, given=given).contested(seen.group(given=given), words)

    def comparable(
        self, side: Side, neighbors: Sequence[Neighbor], gates: Gates, *, given: bool
    ) -> list[NearEntry]:
        """Return the first of `neighbors` that pass the gates that no evidence can argue with.

        `side`: that of the prompt, which came with values `given` or without.
        """
        found: list[NearEntry] = []
        known: dict[tuple[object, ...] | None, bool] = {}
        for neighbor in neighbors:
            seen = self.entries.known(neighbor.id)
            if seen is None:
                continue
            pair = CandidatePair(side, seen.facing(given=given), neighbor.similarity)
            looks = None if given else gate_key(pair.candidate)
            admitted = known.get(looks)  # most candidates are alike in what the gates look at
            if admitted is None:
                admitted = gates.admit(pair)
                if looks is not None:
                    known[looks] = admitted
            if admitted:
                found.append(_near(seen, neighbor, pair, given=given))
                if len(found) == NEIGHBORS:
                    break
        return found

    def rivals(self, entry: Entry) -> bool:
        """Return whether entries with the template text of `entry` have another plan."""
        said = group_name(entry.plan, given=False)
        words = " ".join(content(entry.template.text))
        groups = self.plan_groups((entry.catalog, entry.grounding), given=False)
        return not groups.said_by(words).keys() <= {said}

    def varying(self, entry: Entry) -> tuple[tuple[int, ...], ...]:
        """Return the positions of the slots that entries with its template text fix."""
        return tuple(self.fixed.get(entry.template.text, ()))

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


def _near(seen: EntrySummary, neighbor: Neighbor, pair: CandidatePair, *, given: bool) -> NearEntry:
    template = common(pair).candidate.template if given else pair.candidate.template
    text, group = template.text, seen.group(given=given)
    return NearEntry(neighbor.id, neighbor.similarity, content(text), template.slots, group, text)


def template_words(template: TemplateText) -> frozenset[str]:
    """Return the words of a template text, slots apart."""
    return frozenset(word for word in tokens(template.text) if not is_slot(word))
