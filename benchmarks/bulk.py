"""Filling a store with as many entries as one asks for, a hundred times as fast as by calls.

A plan is stored by the cache once for each form of template, with words of our own in place of the
words that tell templates apart; a record of another template is that record with the words put in.
A sample of them is compared, byte for byte and vector for vector, with what the cache itself makes
of the same prompt and plan: a record that differs ends the run.
"""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from curves import NEAR, Workload
from tqdm import tqdm
from workload import DIMENSION, TENANT, Shape

from semcache import Parameter, PlanCache
from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import from_record, template_key
from semcache.matching.words.content import embedded_text
from semcache.ports import PlanStore, Record
from semcache.prompts.template import TemplateText
from semcache.settings import Settings
from semcache.stores.memory import MemoryStore
from semcache.stores.relational.store import RelationalStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import FakeClock, HashEmbedder

STAND_INS = Shape("zqverb", "zqmeasure", "zqentity", "zqgroup", "zqparty")
NEARBY = "zqnear"
SAMPLE = 20
BATCH = 2_000
"""Records a transaction."""


class Words(HashEmbedder):
    """The stand-in embedder, working out each word once."""

    def __init__(self) -> None:
        super().__init__(dim=DIMENSION)
        self._known: dict[str, np.ndarray] = {}

    def _direction(self, word: str) -> np.ndarray:
        if word not in self._known:
            self._known[word] = super()._direction(word)
        return self._known[word]


@dataclass(frozen=True)
class Form:
    """A record with stand-ins."""

    record: Record
    template: TemplateText
    identify: Callable[[TemplateText], str]
    """Template text → id of the entry with it."""

    @classmethod
    def of(cls, record: Record) -> "Form":
        """Return the form that `record` is."""
        entry = from_record(record)
        if entry.plan.pinned or entry.schema:
            raise SystemExit("the workload's plans are to hold for all values and have no schema")
        return cls(record, entry.template, lambda text: replace(entry, template=text).id)

    def filled(self, words: dict[str, str], embedder: Words) -> Record:
        """Return the record with `words` in it."""
        text, body = self.template.text, self.record.body
        for stand_in, word in words.items():
            text, body = text.replace(stand_in, word), body.replace(stand_in, word)
        template = TemplateText(text=text, slots=self.template.slots)
        vector = embedder.embed([embedded_text(template)])[0]
        embedder.texts.clear()
        return replace(
            self.record,
            id=self.identify(template),
            keys=(template_key(template),),
            body=body,
            vector=vector,
        )


class Bulk:
    """Records of a workload."""

    def __init__(self, work: Workload) -> None:
        self._work = work
        self._embedder = Words()
        prompt, plan = STAND_INS.prompt(2024, 5), STAND_INS.plan(2024, 5)
        self._forms = []
        for more, near in (("", NEAR[0]), (f" near {NEARBY}", NEARBY)):
            plan["query"]["input"]["near"] = near
            self._forms.append(Form.of(made(f"{prompt}{more}", plan)))
        self._check()

    def record(self, number: int) -> Record:
        """Return the record of template `number`."""
        shape, near = self._work.shape(number), self._work.near(number)
        words = {
            STAND_INS.verb: shape.verb,
            STAND_INS.measure: shape.measure,
            STAND_INS.entity: shape.entity,
            STAND_INS.group: shape.group,
            STAND_INS.party: shape.party,
            NEARBY: near,
        }
        return self._forms[near != NEAR[0]].filled(words, self._embedder)

    def _check(self) -> None:
        rng = random.Random(self._work.count)  # noqa: S311 - a sample, not a secret
        for _ in range(SAMPLE):
            number = rng.randrange(self._work.count)
            real = made(self._work.prompt(number, 2024, 5), self._work.plan(number, 2024, 5))
            if not same(self.record(number), real):
                raise SystemExit(f"the record of template {number} is not what the cache makes")

    def check_stored(self, store: PlanStore, count: int) -> None:
        """End the run unless the first `count` templates are stored as this version makes them."""
        rng = random.Random(count)  # noqa: S311 - a sample, not a secret
        for _ in range(SAMPLE if count else 0):
            record = self.record(rng.randrange(count))
            stored = store.get(TENANT, record.id)
            if stored is None or not same(stored, record):
                raise SystemExit(
                    "the store was filled by another version or with another seed: entry "
                    f"{record.id} is not what this one makes; remove it"
                )


def same(one: Record, other: Record) -> bool:
    """Return whether two records differ in nothing but the change that wrote them."""
    alike = replace(one, vector=None, change=0) == replace(other, vector=None, change=0)
    return alike and np.array_equal(one.vector, other.vector)


def made(prompt: str, plan: dict[str, object]) -> Record:
    """Return the record that the cache makes of a prompt and its plan."""
    store = MemoryStore()
    context = CacheContext.of(
        Settings(ttl_s=None),
        store=store,
        embedder=Words(),
        clock=FakeClock(),
        make_index=lambda _: FaissIndex(),
    )
    with PlanCache(context) as cache:
        params = [Parameter("year", 2024, mention="2024"), Parameter("limit", 5, mention="5")]
        if not cache.store(prompt, plan, params=params):
            raise SystemExit("the workload cannot be stored")
        (record,) = store.scan(TENANT)
    return record


def fill(store: RelationalStore, work: Workload, tenants: int, each: int) -> Iterator[int]:
    """Write all of `work` to one tenant, and `each` entries to each of `tenants` small ones.

    Yields how many entries are there after each batch, which is one transaction. Those that an
    earlier call wrote are left as they are: it may have been stopped at any moment.
    """
    bulk = Bulk(work)

    def record(number: int) -> Record:
        if number < work.count:
            return bulk.record(number)
        tenant, n = divmod(number - work.count, each)
        return replace(bulk.record((tenant + n) % work.count), tenant=f"small{tenant}")

    total = work.count + tenants * each
    start = store.room().entries
    bulk.check_stored(store, min(start, work.count))
    for first in tqdm(range(start, total, BATCH), file=sys.stderr, mininterval=60):
        batch = range(first, min(first + BATCH, total))
        store.put_many([record(number) for number in batch])
        yield batch.stop
