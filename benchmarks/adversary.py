"""Ask what is nearly the same, and count what is served wrongly.

    python benchmarks/adversary.py [STREAM.jsonl ...] [--rows 200] [--json OUT]

*Generated*: the prompts of the demo, and the first rows of each stream, are stored; each that is
served its own plan is asked again with one sign, word, case, unit, letter, digit or clause
inserted, dropped or swapped. `mutations.py` says for each kind which plans may be served then.

*Written by hand*: `data/adversary/*.jsonl`, a domain a file, none of them the demo's. A line is a
stored prompt, `{"stored", "text", "params", "plan"}`, where the plan has `{"$": name}` (inside of
text `«name»`) for a value, or a probe, `{"id", "class", "text", "right", "values", "needs"}`:
`right` names the stored plan that the prompt wants with its own `values`; null: none is right. A
planner would then make a call of the operation `needs`; without that nobody can plan it. Values
that follow from the prompt and are no parameters, such as the end of a year, are `constants`.

    cold      nothing but the stored prompts is there
    learned   half of each class was asked before, feedback was given on hits, and what missed or
              was wrong was planned and stored; the other half is counted; then the halves change

right     served the right plan, to the letter
wrong     served anything else
lost      a right plan was there and was not served
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutations import mutations, same
from tqdm import tqdm

from semcache import Hit, Miss, Parameter, PlanCache, SemCache, __version__
from semcache.canonical import Json
from semcache.demo import operations, sales
from semcache.demo.cases import CASES
from semcache.errors import InvalidInput, SemCacheError
from semcache.explore.streams import Row, read_stream
from semcache.ports import Embedder
from semcache.settings import Settings
from semcache.testing import FakeClock

DATA = Path(__file__).parent / "data" / "adversary"
NOW = 1_773_223_200.0
"""Wednesday 2026-03-11, 10:00 UTC: the day on which the relative dates of the probes are right."""
UNTOUCHED = ("sign", "emoji", "case", "version-like number", "clause", "sign at a value",
             "sign at a word", "sign alone", "case of a value", "digit of a value",
             "digit in a word")  # fmt: skip
"""Classes of which none may be served wrongly: signs, values, case, clauses."""
MOST_WRONG = 0.01
"""Highest share of the hits on probes written by hand that may be wrong."""


# Counting ------------------------------------------------------------------------------------


@dataclass
class Count:
    """What came of the prompts of one class."""

    asked: int = 0
    right: int = 0
    wrong: int = 0
    lost: int = 0

    @property
    def hits(self) -> int:
        """Prompts that were served something."""
        return self.right + self.wrong


@dataclass
class Score:
    """What one way of asking came to."""

    mode: str
    classes: dict[str, Count] = field(default_factory=dict)
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    """The wrong hits."""
    losses: list[dict[str, Any]] = field(default_factory=list)
    """The prompts whose right plan was there and was not served."""

    def take(
        self, kind: str, served: Json, *, right: bool, due: bool, about: dict[str, Any]
    ) -> None:
        """Count one prompt; `due`: a right plan was there to be served."""
        count = self.classes.setdefault(kind, Count())
        count.asked += 1
        if served is None:
            count.lost += due
            self.losses += [{"class": kind, **about}] * due
        elif right:
            count.right += 1
        else:
            count.wrong += 1
            self.mistakes.append({"class": kind, **about, "served": served})

    @property
    def total(self) -> Count:
        """All classes together."""
        counts = self.classes.values()
        return Count(*(sum(getattr(c, name) for c in counts) for name in Count().__dict__))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts by class, the wrong hits and the lost ones."""
        classes = {kind: vars(count) for kind, count in sorted(self.classes.items())}
        return {"mode": self.mode, "classes": classes, "total": vars(self.total),
                "mistakes": self.mistakes, "losses": self.losses}  # fmt: skip


# Generated -----------------------------------------------------------------------------------

Look = Callable[[str, str], Json]
"""Text and tenant → the plan served, or None."""


def stream_rows(cache: PlanCache, rows: Iterable[Row]) -> Iterator[Row]:
    """Store `rows` and yield those that have a plan."""
    for row in rows:
        try:
            if row.plan is not None:
                cache.store(row.text, row.plan, params=row.params, tenant=row.scope)
                yield row
        except SemCacheError:
            continue  # a blank prompt, or a plan that cannot be generalized


def demo_rows(semcache: SemCache) -> Iterator[Row]:
    """Ask the demo's prompts, so that they are stored, and yield each with the plan it gets."""
    for number, case in enumerate(CASES):
        try:
            semcache.run(case.prompt, answers=case.answers or None)
        except SemCacheError:
            continue
        found = semcache.lookup(case.prompt, what_if=True)
        if isinstance(found, Hit):
            params = [
                Parameter(name, value, mention=str(value) if str(value) in case.prompt else None)
                for name, value in found.params.items()
            ]
            plan = found.plan.to_dict()
            yield Row(f"demo-{number}", "default", case.prompt, tuple(params), plan)


def attack(score: Score, rows: Sequence[Row], look: Look, *, seed: int) -> Score:
    """Ask each of `rows` that is served its own plan with one thing changed."""
    for row in tqdm(rows, desc=score.mode, leave=False, disable=None):
        if not same(look(row.text, row.scope), row.plan):
            continue
        for one in mutations(row, seed):
            served = look(one.text, row.scope)
            about = {"id": row.id, "stored": row.text, "asked": one.text}
            due = bool(one.plans)
            score.take(one.kind, served, right=one.allows(served), due=due, about=about)
    return score


def looking(lookup: Callable[..., Any]) -> Look:
    """Return a `Look` by way of a `lookup`; a prompt that is refused is served nothing."""

    def look(text: str, tenant: str) -> Json:
        try:
            found = lookup(text, tenant=tenant, what_if=True)
        except InvalidInput:
            return None
        return found.plan.to_dict() if isinstance(found, Hit) else None

    return look


def generated(args: argparse.Namespace, embedder: Embedder, bound: float | None) -> Iterator[Score]:
    """Yield the score of the demo and of each stream."""
    name = "default" if bound is None else f"max_wrong={bound}"
    with sales.memory() as database:
        catalog = operations.catalog(database)
        semcache = SemCache.open(
            catalog=catalog, embedder=embedder, settings=Settings(max_wrong=bound)
        )
        rows = list(demo_rows(semcache))
        yield attack(Score(f"demo {name}"), rows, looking(semcache.lookup), seed=args.seed)
    for path in args.streams:
        cache = open_cache(embedder, bound)
        rows = list(stream_rows(cache, read_stream(path, limit=args.rows)))
        yield attack(Score(f"{path.stem} {name}"), rows, looking(cache.lookup), seed=args.seed)


# Written by hand -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """A prompt written by hand, and what should come of it."""

    id: str
    kind: str
    text: str
    wanted: Json
    """The plan that it wants; None: nobody can plan it."""
    values: Mapping[str, Json]
    due: bool
    """Whether that plan was stored from the start."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A tenant: what it stored, and what is asked."""

    name: str
    stored: tuple[Row, ...]
    probes: tuple[Probe, ...]


def read_domain(path: Path) -> Domain:
    """Return the domain in a file.

    Raises:
        KeyError, ValueError: a line lacks a field or is not JSON, or a probe names no stored plan.
    """
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    plans = {
        line["stored"]: (line["plan"], line.get("constants", {}))
        for line in lines
        if "plan" in line
    }
    stored, probes = [], []
    for line in lines:
        if "stored" in line:
            params = [Parameter(p["name"], p["value"], mention=p["text"]) for p in line["params"]]
            values = {p.name: p.value for p in params}
            made, constants = plans[line["stored"]]
            plan: Any = filled(made, {**constants, **values})
            stored.append(Row(line["stored"], path.stem, line["text"], tuple(params), plan))
        else:
            probes.append(_probe(line, plans))
    return Domain(path.stem, tuple(stored), tuple(probes))


def _probe(line: dict[str, Any], plans: Mapping[str, tuple[Json, dict[str, Json]]]) -> Probe:
    values = line.get("values", {})
    wanted: Json = None
    if line["right"] is not None:
        plan, constants = plans[line["right"]]
        wanted = filled(plan, {**constants, **line.get("constants", {}), **values})
    elif "needs" in line:
        wanted = {"operation": line["needs"], "input": values}
    due = line["right"] is not None
    return Probe(line["id"], line["class"], line["text"], wanted, values, due)


def filled(plan: Json, values: Mapping[str, Json]) -> Json:
    """Return `plan` with its places filled by `values`; a value without a place is left out."""
    if isinstance(plan, dict):
        if plan.keys() == {"$"}:
            return values[str(plan["$"])]
        return {key: filled(inner, values) for key, inner in plan.items()}
    if isinstance(plan, list):
        return [filled(inner, values) for inner in plan]
    if isinstance(plan, str):
        for name, value in values.items():
            plan = plan.replace(f"«{name}»", str(value))
    return plan


def served_to(cache: PlanCache, probe: Probe, tenant: str, *, given: bool, count: bool) -> Any:  # noqa: ANN401 - what a lookup finds
    """Return what a lookup finds for `probe`, or None if the prompt is refused."""
    params = probe.values if given else None
    try:
        return cache.lookup(probe.text, tenant=tenant, params=params, what_if=not count)
    except InvalidInput:
        return None


def learn(cache: PlanCache, domain: Domain, probes: Iterable[Probe], *, given: bool) -> None:
    """Ask `probes`, say which hits were right, and store what a planner makes for the others."""
    for probe in probes:
        found = served_to(cache, probe, domain.name, given=given, count=True)
        if isinstance(found, Hit):
            right = same(found.plan.to_dict(), probe.wanted)
            cache.feedback(found, right=right)
            if right:
                continue
        if probe.wanted is not None:
            params = [
                Parameter(name, value, mention=str(value) if str(value) in probe.text else None)
                for name, value in probe.values.items()
            ]
            plan: Any = probe.wanted
            cache.store(probe.text, plan, params=params, tenant=domain.name)


def halves(probes: Sequence[Probe]) -> tuple[list[Probe], list[Probe]]:
    """Return every second probe of each class, and the others."""
    seen: dict[str, int] = {}
    out: tuple[list[Probe], list[Probe]] = ([], [])
    for probe in probes:
        seen[probe.kind] = seen.get(probe.kind, -1) + 1
        out[seen[probe.kind] % 2].append(probe)
    return out


def ask(
    score: Score, domain: Domain, open_: Callable[[], PlanCache], *, given: bool, learned: bool
) -> Score:
    """Ask the probes of a domain of a fresh cache that holds its plans."""
    rounds: list[tuple[Sequence[Probe], Sequence[Probe]]] = [((), domain.probes)]
    if learned:
        one, two = halves(domain.probes)
        rounds = [(one, two), (two, one)]
    for before, counted in rounds:
        cache = open_()
        for row in domain.stored:
            plan: Any = row.plan
            cache.store(row.text, plan, params=row.params, tenant=domain.name)
        learn(cache, domain, before, given=given)
        for probe in counted:
            if given and not probe.values:
                continue  # a caller without values is the caller with text alone
            found = served_to(cache, probe, domain.name, given=given, count=False)
            hit = found if isinstance(found, Hit) else None
            served = hit.plan.to_dict() if hit else None
            about = {"id": probe.id, "asked": probe.text, "tier": hit.tier if hit else "",
                     "risk": hit.risk if hit else None, "entry": hit.key if hit else "",
                     "wanted": probe.wanted,
                     "miss": found.reason if isinstance(found, Miss) else ""}  # fmt: skip
            right = probe.wanted is not None and same(served, probe.wanted)
            score.take(probe.kind, served, right=right, due=probe.due, about=about)
    return score


def written(domains: Sequence[Domain], embedder: Embedder, bound: float | None) -> Iterator[Score]:
    """Yield the scores of all domains: text and parameters, cold and learned."""
    name = "default" if bound is None else f"max_wrong={bound}"
    for given in (False, True):
        for learned in (False, True):
            ways = ("parameters" if given else "text", "learned" if learned else "cold", name)
            score = Score("written " + " ".join(ways))
            for domain in tqdm(domains, desc=score.mode, leave=False, disable=None):
                ask(
                    score, domain, lambda: open_cache(embedder, bound), given=given, learned=learned
                )
            yield score


# The command ---------------------------------------------------------------------------------


def open_cache(embedder: Embedder, bound: float | None) -> PlanCache:
    """Return an empty cache on the day of the probes."""
    return PlanCache.open(embedder=embedder, max_wrong=bound, clock=FakeClock(NOW))


def print_score(score: Score) -> None:
    """Print the counts by class."""
    print(f"\n{score.mode}\n{'':24s}{'asked':>7s}{'right':>7s}{'wrong':>7s}{'lost':>7s}")
    for kind, count in [*sorted(score.classes.items()), ("all", score.total)]:
        cells = (count.asked, count.right, count.wrong, count.lost)
        print(f"{kind:24s}" + "".join(f"{cell:7d}" for cell in cells))
    if score.mode.startswith("written"):
        total = score.total
        share = total.wrong / max(1, total.hits)
        said = "met" if share <= MOST_WRONG else "not met"
        print(f"wrong of hits {share:.3f}; target {MOST_WRONG}: {said}")
    never = sum(count.wrong for kind, count in score.classes.items() if kind in UNTOUCHED)
    print(f"signs, values, case, clauses served wrong {never}; target 0: {'not ' * bool(never)}met")


def main() -> int:
    """Run the command; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("streams", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=200, help="rows of each stream (200)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the written domains")
    parser.add_argument("--only", choices=("generated", "written"))
    bounds = {"nargs": "+", "default": ["default", "0.01"], "metavar": "BOUND"}
    parser.add_argument("--bounds", **bounds, help="values of max_wrong (default 0.01)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write counts, wrong and lost hits here")
    args = parser.parse_args()
    scores = list(run(args, PlanCache.open().embedder))
    if args.json:
        result = {"semcache": __version__, "scores": [score.to_dict() for score in scores]}
        args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


def run(args: argparse.Namespace, embedder: Embedder) -> Iterator[Score]:
    """Yield each score when it is there, printed."""
    domains = [read_domain(path) for path in sorted(args.data.glob("*.jsonl"))]
    for said in args.bounds:
        bound = None if said == "default" else float(said)
        if args.only != "generated":
            for score in written(domains, embedder, bound):
                print_score(score)
                yield score
        if args.only != "written":
            for score in generated(args, embedder, bound):
                print_score(score)
                yield score


if __name__ == "__main__":
    sys.exit(main())
