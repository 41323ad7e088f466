"""Replay streams of prompts against a cold cache with a perfect planner behind it, and score it.

    python benchmarks/replay.py STREAM.jsonl ... [--json OUT] [--seeds 5]

A stream has one JSON object a line: `{"id", "scope", "text", "params": [{"name", "value", "text"}],
"plan": {...} | null}`. `scope` is the tenant; `plan` is what a perfect planner returns for that
prompt, null where no cached plan may be served. Rows are replayed in file order; each is looked up,
and after a miss its plan is stored.

right     served what the perfect planner would have returned (numbers by value, text without case)
wrong     served anything else, a row whose plan is null included
ceiling   rows whose plan was stored before, so that a perfect matcher could have served them

Beside semcache run, in one process and with one embedder, the rules of its relatives, restated:
`response-0.80/0.95` serves what was stored for the nearest prompt (GPTCache, RedisVL); `orra-0.95`,
given the parameters, the nearest action text and parameter names, values substituted by equality.

The weights that ship were trained with the public streams: a replay of these shows what a cache
does on prompts of a kind that its embedder knows. `--embedders` takes weights that never saw them.
With `--selector-accuracy` a simulated model chooses among the up to five near plans of each miss.
"""

import argparse
import contextlib
import copy
import functools
import itertools
import json
import platform
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from tqdm import tqdm

from semcache import Hit, PlanCache, __version__
from semcache.errors import InvalidInput, InvalidPrompt, InvalidStream
from semcache.explore.score import is_right, replayed, wilson_upper
from semcache.explore.streams import Row, read_stream
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.ports import Embedder
from semcache.testing import FakeClock

Plan = dict[str, Any]


class Rule(Protocol):
    """A cache under test."""

    def lookup(self, row: Row, *, given: bool) -> tuple[Plan | None, str, float]:
        """Return the plan served or None, the tier, and the seconds spent embedding."""

    def store(self, row: Row, *, given: bool) -> None:
        """Take the row's plan after a miss."""


# Reading -------------------------------------------------------------------------------------


def read(path: Path, limit: int | None) -> tuple[Row, ...]:
    """Return the rows of a stream, at most `limit`; a bad one ends the script."""
    try:
        return read_stream(path, limit=limit)
    except InvalidStream as error:
        raise SystemExit(str(error)) from error


# Caches --------------------------------------------------------------------------------------


class Timed:
    """An embedder that remembers every text and adds up the seconds of the ones it had to embed."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.fingerprint = inner.fingerprint
        self.strict_cosine = getattr(inner, "strict_cosine", 0.95)
        self.seconds = 0.0
        self._memo: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row a text."""
        start = time.perf_counter()
        for text in texts:
            if text not in self._memo:
                self._memo[text] = self.inner.embed([text])[0]
        self.seconds += time.perf_counter() - start
        return np.stack([self._memo[text] for text in texts])

    def warm(self, texts: Sequence[str]) -> None:
        """Embed many at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._memo]
        for start in range(0, len(new), 256):
            part = new[start : start + 256]
            self._memo.update(zip(part, self.inner.embed(part), strict=True))


class Semcache:
    """This package."""

    def __init__(
        self,
        embedder: Timed,
        *,
        accuracy: float | None = None,
        stubborn: bool = False,
        **options: Any,  # noqa: ANN401 - as `open` takes
    ) -> None:
        """Open a cold cache; with `accuracy`, a simulated model chooses among near plans.

        `stubborn`: it errs towards the nearest plan, and once more when it is asked again.
        """
        self._embedder = embedder
        self._accuracy = accuracy
        self._stubborn = stubborn
        self._random = random.Random(0)  # noqa: S311 - a simulation, not a secret
        # Time stands still: entries with relative words end with a quarter of an hour, and whether
        # one begins while a stream is replayed would change some hits.
        self._cache = PlanCache.open(
            embedder=embedder, ttl_s=None, max_entries=None, clock=FakeClock(), **options
        )

    def lookup(self, row: Row, *, given: bool) -> tuple[Plan | None, str, float]:
        """Look the row's prompt up."""
        before = self._embedder.seconds
        params = row.values if given else None
        try:
            found = self._cache.lookup(row.text, tenant=row.scope, params=params)
        except (
            InvalidInput
        ) as error:  # a stream may hold a blank prompt; nothing can be served for it
            return None, f"refused:{type(error).__name__}", self._embedder.seconds - before
        embedding = self._embedder.seconds - before
        if isinstance(found, Hit):
            return found.plan.to_dict(), found.tier, embedding
        if self._accuracy is not None:
            hit = self._selected(row, params)
            if hit is not None:
                return hit.plan.to_dict(), hit.tier, self._embedder.seconds - before
        return None, f"miss:{found.reason}", embedding

    def _selected(self, row: Row, params: Mapping[str, object] | None) -> Hit | None:
        """Return the hit on the plan that the simulated model chose, as often as is needed."""
        options = self._cache.options(row.text, tenant=row.scope, params=params)
        # Who takes a plan for the right one has a value for each of its names.
        spare = next(iter(row.values.values()), "it")
        told = [{n: row.values.get(n, spare) for n in one.shown.missing} for one in options]
        plans = [self._cache.filled(*each) for each in zip(options, told, strict=True)]
        rights = [plan is not None and is_right(plan.to_dict(), row.plan) for plan in plans]
        at = self._choice(rights)
        if at is None:
            return None
        needed = self._cache.choices_needed(options[at], told[at])
        errs_again = self._stubborn and not rights[at]
        if needed == 0 or (needed == 2 and not errs_again and self._choice(rights) != at):
            return None
        return self._cache.take(options[at], told[at], choices=needed)

    def _choice(self, rights: Sequence[bool]) -> int | None:
        """Return what a model chooses that is right so often: the plan that is right, or none.

        Where it errs it chooses one of the others alike, none among them; if it is stubborn, the
        nearest of them.
        """
        best = rights.index(True) if True in rights else None
        if not rights or self._random.random() < (self._accuracy or 0):
            return best
        others: list[int | None] = [at for at, right in enumerate(rights) if not right]
        if self._stubborn:
            return others[0] if others else None
        return self._random.choice([*others, None] if best is not None else others)

    def store(self, row: Row, *, given: bool) -> None:
        """Store the row's plan."""
        del given  # what a planner tells on a miss is the same
        with contextlib.suppress(InvalidPrompt):
            self._cache.store(row.text, row.plan, params=row.params, tenant=row.scope)


class Nearest:
    """Vectors of one scope after another, searched exhaustively."""

    def __init__(self, embedder: Timed) -> None:
        self._embedder = embedder
        self._scopes: dict[str, tuple[list[np.ndarray], list[Any]]] = {}

    def best(self, scope: str, text: str) -> tuple[Any, float, float]:
        """Return the nearest item, its cosine, and the seconds spent embedding."""
        before = self._embedder.seconds
        vector = self._embedder.embed([text])[0]
        embedding = self._embedder.seconds - before
        vectors, items = self._scopes.get(scope, ([], []))
        if not items:
            return None, -1.0, embedding
        scores = np.stack(vectors) @ vector
        at = int(scores.argmax())
        return items[at], float(scores[at]), embedding

    def add(self, scope: str, text: str, item: object) -> None:
        """Keep an item under its text."""
        vectors, items = self._scopes.setdefault(scope, ([], []))
        vectors.append(self._embedder.embed([text])[0])
        items.append(item)


class Response:
    """Serves what was stored for the nearest prompt: GPTCache, RedisVL, LangChain."""

    def __init__(self, embedder: Timed, threshold: float) -> None:
        self._near, self._threshold = Nearest(embedder), threshold

    def lookup(self, row: Row, *, given: bool) -> tuple[Plan | None, str, float]:
        """Serve the nearest, values and all."""
        del given
        plan, score, embedding = self._near.best(row.scope, row.text)
        return (plan if score >= self._threshold else None), "nearest", embedding

    def store(self, row: Row, *, given: bool) -> None:
        """Keep the plan as it is."""
        del given
        self._near.add(row.scope, row.text, row.plan)


class Orra:
    """Nearest action text and parameter names over 0.95; values substituted by equality."""

    def __init__(self, embedder: Timed) -> None:
        self._near = Nearest(embedder)

    def lookup(self, row: Row, *, given: bool) -> tuple[Plan | None, str, float]:
        """Serve the nearest with the caller's values in the fields that had the old ones."""
        values = row.values if given else {}
        item, score, embedding = self._near.best(row.scope, self._action(row.text, values))
        if item is None or score <= 0.95 or set(item["map"].values()) != set(values):
            return None, "nearest", embedding
        plan = copy.deepcopy(item["plan"])
        for pointer, name in item["map"].items():
            put(plan, pointer, values[name])
        return plan, "nearest", embedding

    def store(self, row: Row, *, given: bool) -> None:
        """Map each field that has a parameter's value to it; the last of equal ones wins."""
        values = row.values if given else {}
        by_value = {json.dumps(value, sort_keys=True): name for name, value in values.items()}
        mapped = {
            pointer: by_value[json.dumps(value, sort_keys=True)]
            for pointer, value in leaves(row.plan)
            if json.dumps(value, sort_keys=True) in by_value
        }
        self._near.add(row.scope, self._action(row.text, values), {"plan": row.plan, "map": mapped})

    @staticmethod
    def _action(text: str, values: dict[str, Any]) -> str:
        return text + ":::" + "::".join(values)


Pointer = tuple[Any, ...]


def leaves(value: Any, at: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:  # noqa: ANN401 - any JSON
    """Yield each scalar with the keys that lead to it."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if items is None:
        yield at, value
        return
    for key, inner in items:
        yield from leaves(inner, (*at, key))


def put(plan: Any, pointer: Pointer, value: Any) -> None:  # noqa: ANN401 - any JSON
    """Replace what stands at `pointer`."""
    for key in pointer[:-1]:
        plan = plan[key]
    plan[pointer[-1]] = value


# Scoring -------------------------------------------------------------------------------------


@dataclass
class Score:
    """What one cache did on one stream."""

    stream: str
    cache: str
    given: bool
    rows: int = 0
    hits: int = 0
    wrong: int = 0
    ceiling: int = 0
    tiers: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[bool | None] = field(default_factory=list)
    """One a row: whether the hit was right; None for a miss."""

    def take(
        self, row: Row, served: Plan | None, tier: str, seconds: float, embedding: float
    ) -> None:
        """Count one lookup."""
        self.rows += 1
        self.tiers[tier] = self.tiers.get(tier, 0) + 1
        name = tier if served is not None else "miss"
        self.seconds.setdefault(name, []).append(seconds - embedding)
        right = None if served is None else is_right(served, row.plan)
        self.outcomes.append(right)
        if served is None:
            return
        self.hits += 1
        if not right:
            self.wrong += 1
            self.mistakes.append(
                {"id": row.id, "text": row.text, "tier": tier, "served": served, "wanted": row.plan}
            )

    def summary(self) -> dict[str, Any]:
        """Return shares and percentiles."""
        out = {
            k: v for k, v in asdict(self).items() if k not in {"seconds", "mistakes", "outcomes"}
        }
        right = self.hits - self.wrong
        out |= {
            "hit": self.hits / max(1, self.rows),
            "right": right / max(1, self.rows),
            "right_of_ceiling": right / max(1, self.ceiling),
            "wrong_share": self.wrong / max(1, self.hits),
            "wrong_upper95": wilson_upper(self.wrong, self.hits),
            "ceiling_share": self.ceiling / max(1, self.rows),
            "over_time": over_time(self.outcomes),
            "milliseconds_without_embedding": {
                t: percentiles(s) for t, s in sorted(self.seconds.items())
            },
        }
        return out


def over_time(outcomes: Sequence[bool | None]) -> list[list[int]]:
    """Return hits and wrong ones of each tenth of the rows, in order."""
    ends = [len(outcomes) * tenth // 10 for tenth in range(11)]
    parts = [outcomes[a:b] for a, b in itertools.pairwise(ends)]
    return [[sum(o is not None for o in part), sum(o is False for o in part)] for part in parts]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p90, p99 in milliseconds."""
    return {f"p{q}": round(float(np.percentile(seconds, q)) * 1000, 4) for q in (50, 90, 99)}


class Answer(NamedTuple):
    """What a cache said and what it took."""

    plan: Plan | None
    tier: str
    embedding: float
    seconds: float


def timed(cache: Rule, row: Row, *, given: bool) -> Answer:
    """Look a row up."""
    start = time.perf_counter()
    plan, tier, embedding = cache.lookup(row, given=given)
    return Answer(plan, tier, embedding, time.perf_counter() - start)


def replay(cache: Rule, rows: Sequence[Row], score: Score, *, bar: bool) -> Score:
    """Replay `rows` against a cold cache."""
    bar_of_rows = tqdm(rows, desc=f"{score.stream} {score.cache}", disable=not bar, leave=False)
    steps = replayed(
        bar_of_rows,
        lookup=lambda row: timed(cache, row, given=score.given),
        served=lambda answer: answer.plan,
        store=lambda row: cache.store(row, given=score.given),
    )
    for step in steps:
        answer = step.answer
        score.ceiling += step.servable
        score.take(step.row, answer.plan, answer.tier, answer.seconds, answer.embedding)
    return score


# The command ---------------------------------------------------------------------------------


def caches(
    embedder: Timed, options: dict[str, Any], names: Sequence[str], *, given: bool
) -> Iterator[tuple[str, Rule]]:
    """Yield cold caches by name."""
    if "semcache" in names:
        yield "semcache", Semcache(embedder, **options)
    if "response" in names and not given:
        yield "response-0.80", Response(embedder, 0.80)
        yield "response-0.95", Response(embedder, 0.95)
    if "orra" in names and given:
        yield "orra-0.95", Orra(embedder)


COLUMNS = (
    ("stream", "14s"),
    ("cache", "14s"),
    ("mode", "7s"),
    ("rows", ">6"),
    ("hit", ">6.3f"),
    ("right", ">6.3f"),
    ("ceiling_share", ">8.3f"),
    ("right_of_ceiling", ">10.3f"),
    ("wrong", ">6"),
    ("wrong_share", ">9.4f"),
    ("wrong_upper95", ">9.4f"),
)
HEADINGS = ("stream", "cache", "mode", "rows", "hit", "right", "ceiling", "of ceiling")
HEADINGS += ("wrong", "wrong/hit", "<= (95%)")


def line(s: dict[str, Any]) -> str:
    """Return one row of the table."""
    shown = s | {"mode": "params" if s["given"] else "text"}
    return " ".join(format(shown[name], form) for name, form in COLUMNS)


def head() -> str:
    """Return the heading of the table."""
    widths = [form.rstrip("sf").split(".")[0] for _, form in COLUMNS]
    return " ".join(format(name, width) for name, width in zip(HEADINGS, widths, strict=True))


def pooled(scores: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row a cache and mode: shares pooled, `right_of_ceiling` as mean of streams."""
    out = []
    for cache, given in dict.fromkeys((s["cache"], s["given"]) for s in scores):
        group = [s for s in scores if (s["cache"], s["given"]) == (cache, given)]
        total = {k: sum(s[k] for s in group) for k in ("rows", "hits", "wrong", "ceiling")}
        out.append(
            total
            | {
                "stream": f"all {len(group)}",
                "cache": cache,
                "given": given,
                "hit": total["hits"] / total["rows"],
                "right": (total["hits"] - total["wrong"]) / total["rows"],
                "ceiling_share": total["ceiling"] / total["rows"],
                "right_of_ceiling": sum(s["right_of_ceiling"] for s in group) / len(group),
                "wrong_share": total["wrong"] / max(1, total["hits"]),
                "wrong_upper95": wilson_upper(total["wrong"], total["hits"]),
            }
        )
    return out


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path, metavar="STREAM.jsonl")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write scores, setup and mistakes as JSON"
    )
    parser.add_argument("--rows", type=int, help="replay at most this many rows of each stream")
    parser.add_argument(
        "--seed", type=int, help="shuffle the rows with this seed; default: file order"
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="replay in N orders, shuffled with seeds 0 to N-1"
    )
    parser.add_argument(
        "--embedders",
        type=Path,
        metavar="DIR",
        help="weights of train_embedder.py, of which each stream gets those trained without it",
    )
    parser.add_argument("--mode", choices=("text", "params", "both"), default="both")
    parser.add_argument(
        "--caches",
        nargs="+",
        choices=("semcache", "response", "orra"),
        default=["semcache", "response", "orra"],
    )
    parser.add_argument(
        "--threshold", type=float, default=0.95, help="cosine of semcache's semantic tier"
    )
    parser.add_argument(
        "--selector-accuracy",
        type=float,
        metavar="SHARE",
        help="let a simulated model that is right so often choose among the near plans of a miss",
    )
    parser.add_argument(
        "--stubborn",
        action="store_true",
        help="let that model err towards the nearest plan, and again when it is asked again",
    )
    parser.add_argument(
        "--max-wrong", type=float, help="highest share of wrong hits that semcache may have"
    )
    return parser.parse_args(argv)


def setup(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures depend on."""
    packages = ("numpy", "torch", "sentence-transformers", "faiss-cpu")
    return {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "semcache": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {p: version(p) for p in packages},
        "threshold": args.threshold,
        "max_wrong": args.max_wrong,
        "selector_accuracy": args.selector_accuracy,
        "stubborn": args.stubborn,
    }


def orders(args: argparse.Namespace) -> tuple[int | None, ...]:
    """Return the seeds that rows are shuffled with; None is file order."""
    return (args.seed,) if args.seeds is None else tuple(range(args.seeds))


def replay_all(
    args: argparse.Namespace, embedder: Timed, path: Path, seed: int | None
) -> Iterator[Score]:
    """Replay one stream in one order against every cache, printing a line for each."""
    options = {"threshold": args.threshold, "max_wrong": args.max_wrong}
    options |= {"accuracy": args.selector_accuracy, "stubborn": args.stubborn}
    rows = list(read(path, args.rows))
    if seed is not None:
        random.Random(seed).shuffle(rows)  # noqa: S311 - an order, not a secret
    if {"response", "orra"} & set(args.caches):
        embedder.warm([r.text for r in rows])
    for given in {"text": (False,), "params": (True,), "both": (False, True)}[args.mode]:
        for name, cache in caches(embedder, options, args.caches, given=given):
            score = Score(stream=path.stem, cache=name, given=given)
            yield replay(cache, rows, score, bar=sys.stderr.isatty())
            print(line(score.summary()), flush=True)


def spread(runs: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return mean, lowest and highest of the shares over runs that differ in row order."""
    out = []
    for each in zip(*runs, strict=True):
        row = {key: each[0][key] for key in ("stream", "cache", "given")}
        for share in ("right_of_ceiling", "wrong_share"):
            values = [summary[share] for summary in each]
            row[share] = {"mean": sum(values) / len(values), "low": min(values)}
            row[share]["high"] = max(values)
        out.append(row)
    return out


def spread_line(row: dict[str, Any]) -> str:
    """Return one row of the table of spreads."""
    shares = (
        f"{share} {row[share]['mean']:.3f} ({row[share]['low']:.3f} to {row[share]['high']:.3f})"
        for share in ("right_of_ceiling", "wrong_share")
    )
    mode = "params" if row["given"] else "text"
    return f"{row['stream']:14s} {row['cache']:14s} {mode:7s} " + "  ".join(shares)


def weights_without(stream: Path, embedders: Path | None) -> Path | None:
    """Return the folder of the weights that were trained without a stream.

    `embedders`: a folder of such folders; None: the weights that ship, which were trained with the
    public streams.
    """
    if embedders is None:
        return shipped_weights()
    for training in sorted(embedders.glob("*/training.json")):
        if stream.stem in json.loads(training.read_text(encoding="utf-8"))["left_out"]:
            return training.parent
    raise SystemExit(f"{embedders} has no weights that were trained without {stream.stem}")


@functools.cache
def embedder_of(weights: Path | None) -> Timed:
    """Return an embedder of this process, which remembers what was embedded before."""
    return Timed(MiniLMEmbedder(weights))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    args = arguments(argv)
    embedders = {path: embedder_of(weights_without(path, args.embedders)) for path in args.streams}
    scores: list[Score] = []
    runs: list[list[dict[str, Any]]] = []
    print(head(), flush=True)
    for seed in orders(args):
        if seed is not None:
            print(f"rows shuffled with seed {seed}:")
        run = [
            score
            for path in args.streams
            for score in replay_all(args, embedders[path], path, seed)
        ]
        summaries = [score.summary() for score in run]
        if len(args.streams) > 1:
            print(*[line(s) for s in pooled(summaries)], sep="\n")
        scores += run
        runs.append([*summaries, *pooled(summaries)])
    spreads = spread(runs)
    if len(runs) > 1:
        print(*map(spread_line, spreads), sep="\n")
    if args.json:
        out = {"setup": setup(args), "streams": summaries, "pooled": pooled(summaries)}
        out |= {"runs": runs, "spread": spreads} if len(runs) > 1 else {}
        out["mistakes"] = {
            f"{s.stream} {s.cache} {'params' if s.given else 'text'}": s.mistakes for s in scores
        }
        args.json.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
