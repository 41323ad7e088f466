"""The templates, prompts and plans that budgets.py and others measure, and caches of them.

The workload is made, not recorded: prompts such as "rank the margin of refunds in 2024 by region
for suppliers top 5". Each template has its own plan in the routes format (400 bytes of JSON) and
two values.
"""

import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from semcache import Hit, Parameter, PlanCache, __version__
from semcache.matching.gates import STRICT
from semcache.ports import Embedder
from semcache.testing import HashEmbedder

TENANT = "default"
DIMENSION = 384
TAUGHT = 64
"""Prompts that a tenant is told the plans of before its hits by meaning are measured."""

VERBS = "compare rank chart average sum plot export audit forecast split".split()
MEASURES = "revenue margin discount quantity weight price delay rating cost tax".split()
ENTITIES = (
    "orders invoices shipments returns payments products tickets visits refunds claims".split()
)
GROUPS = "category region channel state city month store brand segment warehouse".split()
PARTIES = "suppliers partners members guests agents dealers tenants owners pilots nurses".split()


@dataclass(frozen=True)
class Shape:
    """One template of the workload."""

    verb: str
    measure: str
    entity: str
    group: str
    party: str

    def prompt(self, year: int, limit: int) -> str:
        """Return the prompt for these values."""
        return (
            f"{self.verb} the {self.measure} of {self.entity} in {year} by {self.group} "
            f"for {self.party} top {limit}"
        )

    def plan(self, year: int, limit: int) -> dict[str, Any]:
        """Return the plan for these values."""
        query = {
            "table": self.entity,
            "measure": self.measure,
            "how": self.verb,
            "group_by": [self.group],
            "filters": [
                {"field": "year", "operator": "equals", "value": year},
                {"field": "party", "operator": "equals", "value": self.party},
            ],
            "order_by": [{"field": self.measure, "direction": "desc"}],
            "limit": limit,
        }
        return {
            "start_node": {"route": "query"},
            "query": {"operation": "query_sales", "input": query, "route": "done"},
            "done": {"completed": True, "vars": {"answer": "$.query.data"}},
        }


def shapes(count: int, rng: random.Random) -> list[Shape]:
    """Return `count` different templates, at most 100,000."""
    numbers = rng.sample(range(100_000), count)
    return [
        Shape(
            VERBS[n % 10],
            MEASURES[n // 10 % 10],
            ENTITIES[n // 100 % 10],
            GROUPS[n // 1000 % 10],
            PARTIES[n // 10_000],
        )
        for n in numbers
    ]


def asked(templates: Sequence[Shape], count: int, rng: random.Random) -> list[str]:
    """Return prompts of these templates with values of their own."""
    return [
        rng.choice(templates).prompt(rng.randrange(1990, 2030), rng.randrange(2, 99))
        for _ in range(count)
    ]


class Timed:
    """An embedder, by default the stand-in, that adds up the seconds that it takes."""

    def __init__(self, inner: Embedder | None = None) -> None:
        self._inner = HashEmbedder(dim=DIMENSION) if inner is None else inner
        self.fingerprint = self._inner.fingerprint
        self.strict_cosine = getattr(self._inner, "strict_cosine", STRICT)
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row a text."""
        start = time.perf_counter()
        rows = self._inner.embed(texts)
        self.seconds += time.perf_counter() - start
        return rows


def opened(directory: Path, embedder: Timed, *, bound: int | None = None) -> PlanCache:
    """Return the cache in `directory`; `bound`: most entries of all tenants together."""
    return PlanCache.open(
        directory, embedder=embedder, max_entries=None, max_total_entries=bound, ttl_s=None
    )


def fill(cache: PlanCache, templates: Sequence[Shape]) -> None:
    """Store a plan for each template."""
    for shape in tqdm(templates, desc=f"storing {len(templates):,}", leave=False, file=sys.stderr):
        params = [Parameter("year", 2024, mention="2024"), Parameter("limit", 5, mention="5")]
        stored = cache.store(shape.prompt(2024, 5), shape.plan(2024, 5), params=params)
        if not stored or stored.reason:
            raise SystemExit(f"the workload cannot be stored: {stored.reason}")


def teach(
    cache: PlanCache, prompts: Sequence[str], lead: str, tail: str = "", *, tenant: str = TENANT
) -> None:
    """Label prompts between `lead` and `tail` as the planned misses of stored templates would be.

    A tenant without labels serves little.
    """
    entries = cache._context.views.current(tenant).entries  # noqa: SLF001 - labels without their stores
    for prompt in prompts:
        stored, asked = cache.lookup(prompt, tenant=tenant), f"{lead}{prompt}{tail}"
        cache.lookup(asked, tenant=tenant)
        if isinstance(stored, Hit):
            family = entries[stored.entry].said
            cache._context.labels.planned(tenant, asked, {family})  # noqa: SLF001 - as above


@contextmanager
def scratch(directory: Path) -> Iterator[Path]:
    """Give a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(dir=directory, prefix="semcache-budgets-") as name:
        yield Path(name)


def expect(cache: PlanCache, prompts: Sequence[str], tier: str) -> None:
    """End the run unless each of `prompts` hits in `tier`: else something else would be timed."""
    for prompt in prompts:
        found = cache.lookup(prompt)
        if not isinstance(found, Hit) or found.tier != tier:
            raise SystemExit(f"expected a hit of the {tier} tier:\n{found.explain()}")


def polite(prompts: Sequence[str]) -> list[str]:
    """Return a paraphrase of each prompt."""
    return [f"could you please {prompt}?" for prompt in prompts]


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    packages = ("numpy", "faiss-cpu", "diskcache", "pydantic")
    return {
        "semcache": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: version(name) for name in packages},
    }
