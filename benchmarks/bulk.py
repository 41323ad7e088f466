"""Filling a directory with as many entries as one asks for, a hundred times as fast as by calls.

A plan is stored by the cache once for each form of template, with words of our own in place of the
words that tell templates apart; a record of another template is that record with the words put in.
A sample of them is compared, byte for byte and vector for vector, with what the cache itself makes
of the same prompt and plan: a record that differs ends the run.
"""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from budgets import DIMENSION, TENANT, Shape
from curves import NEAR, Workload
from tqdm import tqdm

from semcache import Parameter, PlanCache
from semcache.cache.entry import from_record, template_key
from semcache.matching.content import embedded_text
from semcache.ports import Record
from semcache.prompts.template import TemplateText
from semcache.settings import Settings
from semcache.stores.disk import DiskStore
from semcache.stores.memory import MemoryIndex, MemoryStore
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
            bulk = self.record(number)
            real = made(self._work.prompt(number, 2024, 5), self._work.plan(number, 2024, 5))
            same = replace(bulk, vector=None, change=0) == replace(real, vector=None, change=0)
            if not same or not np.array_equal(bulk.vector, real.vector):
                raise SystemExit(f"the record of template {number} is not what the cache makes")


def made(prompt: str, plan: dict[str, object]) -> Record:
    """Return the record that the cache makes of a prompt and its plan."""
    store = MemoryStore()
    with PlanCache(
        store=store,
        embedder=Words(),
        clock=FakeClock(),
        make_index=lambda _: MemoryIndex(),
        observer=None,
        settings=Settings(ttl_s=None),
    ) as cache:
        params = [Parameter("year", 2024, mention="2024"), Parameter("limit", 5, mention="5")]
        if not cache.store(prompt, plan, params=params):
            raise SystemExit("the workload cannot be stored")
        (record,) = store.scan(TENANT)
    return record


def fill(directory: Path, work: Workload, tenants: int, each: int) -> None:
    """Write all of `work` to one tenant, and `each` entries to each of `tenants` small ones."""
    bulk = Bulk(work)

    def records() -> Iterator[Record]:
        for number in range(work.count):
            yield bulk.record(number)
        for tenant in range(tenants):
            for n in range(each):
                yield replace(bulk.record((tenant + n) % work.count), tenant=f"small{tenant}")

    total = work.count + tenants * each
    store = DiskStore.open(directory)
    try:
        for batch in batches(iter(tqdm(records(), total=total, file=sys.stderr, mininterval=5))):
            with store._opened.writing():  # noqa: SLF001 - one transaction for many
                for record in batch:
                    store.put(record)
    finally:
        store.close()


def batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Yield lists of records."""
    while batch := list(islice(records, BATCH)):
        yield batch
