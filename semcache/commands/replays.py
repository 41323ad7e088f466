"""`semcache evaluate`, `semcache tune` and `semcache train`: what streams of prompts tell."""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from semcache.binding.volatile import Volatile
from semcache.cache.plan_cache import PlanCache
from semcache.canonical import as_object, plain
from semcache.commands.options import add_command, add_common, cache_of, existing_cache_of, place_of
from semcache.commands.output import WRONG, print_json, print_pairs, progress
from semcache.errors import InvalidInput
from semcache.explore.evaluate import evaluate, rows_of
from semcache.explore.report import PlanCost, Report, check_once, pooled
from semcache.explore.streams import Row, check_count, read_log
from semcache.explore.tune import TRIED, recommend
from semcache.settings import Settings
from semcache.upkeep import adaptation
from semcache.wiring.models import difference_folder, difference_keys

if TYPE_CHECKING:
    from semcache.commands.options import Commands


N = TypeVar("N", int, float)


def _number(make: Callable[[str], N], fits: Callable[[N], bool], what: str) -> Callable[[str], N]:
    """Return what reads the number that an option has, if it `fits`."""

    def read(text: str) -> N:
        try:
            if fits(number := make(text)):
                return number
        except ValueError:
            pass  # it is none
        raise argparse.ArgumentTypeError(f"{text!r} is no {what}")

    return read


_SHARE = _number(float, lambda share: 0 < share < 1, "share between 0 and 1")
_AMOUNT = _number(float, lambda amount: 0 <= amount < math.inf, "number of 0 or more")
_COUNT = _number(int, lambda count: count >= 1, "whole number of 1 or more")
_COUNT_OR_NONE = _number(int, lambda count: count >= 0, "whole number of 0 or more")


def add(commands: "Commands") -> None:
    """Add the commands that replay streams, and train by them."""
    options = add_command(commands, "evaluate", _evaluate)
    options.add_argument(
        "streams", nargs="+", type=Path, metavar="STREAM", help="JSON lines, each file once"
    )
    options.add_argument("--threshold", type=float, help="cosine to exceed (default: 0.95)")
    options.add_argument(
        "--max-wrong", type=_SHARE, help="highest share of wrong hits (default: no bound)"
    )
    options.add_argument(
        "--mistakes",
        type=_COUNT_OR_NONE,
        metavar="COUNT",
        help="wrong hits to tell, the surest first (default: 5, as JSON 20)",
    )
    for name, what in (
        ("tokens", "tokens that your model takes for one plan"),
        ("seconds", "seconds that it takes"),
        ("price", "what it costs"),
    ):
        options.add_argument(
            f"--plan-{name}", type=_AMOUNT, default=0.0, metavar="N", help=f"{what}; tells savings"
        )
    _add_replay(options)
    options = add_command(commands, "tune", _tune)
    options.add_argument("stream", type=Path, metavar="STREAM", help="JSON lines")
    options.add_argument(
        "--max-wrong", type=_SHARE, default=0.01, help="share of wrong hits (default: 0.01)"
    )
    options.add_argument("--confidence", type=_SHARE, default=0.95, help="default: 0.95")
    options.add_argument(
        "--knob", choices=tuple(TRIED), default="threshold", help="what to set (default: threshold)"
    )
    _add_replay(options)
    options = add_command(commands, "train", _train)
    options.add_argument(
        "log",
        nargs="?",
        type=Path,
        metavar="LOG",
        help="JSON lines with `text` and `plan`, oldest first (default: what the cache holds)",
    )
    options.add_argument(
        "--forget", action="store_true", help="take back what was trained: the plain embedder"
    )
    for name, default, what in (
        ("rows", adaptation.LATEST, "prompts used, the latest"),
        ("steps", adaptation.STEPS, "steps of training"),
    ):
        options.add_argument(
            f"--{name}", type=int, default=default, help=f"{what} (default: {default:,})"
        )
    options.add_argument("--given", action="store_true", help="judge with parameters' values given")
    _add_ignore(options)
    add_common(options)
    options.set_defaults(tenant=None)


def _evaluate(options: argparse.Namespace) -> int:
    # All are read before the first is replayed: what is wrong with one is not told minutes later.
    streams = [(p, *rows_of(p, log=options.log, limit=options.rows)) for p in options.streams]
    check_once([(str(path), rows) for path, rows, _ in streams])
    cost = PlanCost(options.plan_tokens, options.plan_seconds, options.plan_price)
    reports: list[Report] = []
    for _, rows, name in streams:
        # The first replay's embedder serves the others: loading it takes seconds.
        cache = reports[0].cache if reports else None
        reports.append(
            evaluate(
                rows,
                given=options.given,
                threshold=0.95 if options.threshold is None else options.threshold,
                max_wrong=options.max_wrong,
                embedder=cache.embedder if cache else None,
                open_cache=partial(PlanCache.open, ignore=options.ignore),
                name=name,
                progress=progress(name),
            )
        )
        if not options.json:
            lines = reports[-1].lines(mistakes=_told(options, 5))
            print("\n".join([*lines, *_saved(reports[-1], cost)]), flush=True)
    if len(reports) > 1:
        reports.append(pooled(reports))
    if options.json:
        told = _told(options, 20)
        print_json(
            [r.to_dict(mistakes=told) | {"saved": plain(asdict(r.saved(cost)))} for r in reports]
        )
    elif len(reports) > 1:
        print("\n".join([*reports[-1].lines(mistakes=0), *_saved(reports[-1], cost)]))
    return 0


def _saved(report: Report, cost: PlanCost) -> list[str]:
    """Return what the hits of a report saved, if somebody said what a plan costs."""
    if cost == PlanCost():
        return []
    return [f"saved      {report.right:,} plans: {report.saved(cost)}"]


def _told(options: argparse.Namespace, usual: int) -> int:
    """Return how many mistakes to tell."""
    wanted: int | None = options.mistakes
    return usual if wanted is None else wanted


def _tune(options: argparse.Namespace) -> int:
    found = recommend(
        options.stream,
        target=options.max_wrong,
        confidence=options.confidence,
        knob=options.knob,
        given=options.given,
        log=options.log,
        limit=options.rows,
        progress=progress(options.stream.stem),
        open_cache=partial(PlanCache.open, ignore=options.ignore),
    )
    if options.json:
        print_json(found.to_dict())
    else:
        print(found)
    return 0 if found.chosen else WRONG


def _add_ignore(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATH",
        help="field of plans that is new each time, as `thought` or `/tool_calls/*/id`; repeatable",
    )


def _add_replay(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--log", action="store_true", help="lines need only `text` and `plan`: a log of your own"
    )
    _add_ignore(options)
    options.add_argument("--given", action="store_true", help="give lookups the parameters' values")
    options.add_argument("--rows", type=_COUNT, help="replay at most this many rows of each stream")
    options.add_argument("--json", action="store_true", help="print JSON")


def _train(options: argparse.Namespace) -> int:
    settings = place_of(options)
    if settings.embedder or settings.frozen:
        name = "embedder" if settings.embedder else "frozen"
        raise InvalidInput(
            f"{name} is {getattr(settings, name)!r}, and training adapts the default embedder of "
            "a cache that is written to; leave that setting out"
        )
    if options.forget:
        return _forget(options, settings)
    check_count("rows", options.rows)
    check_count("steps", options.steps)
    told = progress("training")
    done = adaptation.adapt(
        _rows(options)[-options.rows :],
        replay=partial(
            adaptation.replay,
            threshold=settings.threshold,
            max_wrong=settings.max_wrong,
            given=options.given,
        ),
        steps=options.steps,
        told=None if told is None else lambda step, steps, _: told(step, steps),
    )
    renewed = 0
    if not done.refusal:
        folder, (encrypt, _) = _folder(settings), difference_keys(settings)
        with cache_of(options):
            pass  # makes the directory, if there is none
        adaptation.save(done.difference, folder, encrypt=encrypt)
        renewed = _renewed(options)
    if options.json:
        said = {**done.difference.training, "taken": not done.refusal, "refusal": done.refusal}
        print_json({**said, "embedded_anew": renewed})
    else:
        print("\n".join(_lines(done)))
        if not done.refusal:
            print(f"taken: {renewed} entries embedded anew; reopen what has the cache open")
    return WRONG if done.refusal else 0


def _lines(done: adaptation.Adaptation) -> Iterator[str]:
    said, before, after = done.difference.training, done.before, done.after
    yield f"trained on {said['prompts']} prompts, judged by the {said['held_back']} after them:"
    yield f"  plan found first  {before.first} -> {after.first} of {done.ceiling}"
    yield f"  right hits        {before.right} -> {after.right}"
    yield f"  wrong hits        {before.wrong} -> {after.wrong}"
    if done.refusal:
        yield f"not taken: {done.refusal}"


def _rows(options: argparse.Namespace) -> list[Row]:
    volatile = Volatile.of(options.ignore)
    if options.log is None:
        with existing_cache_of(options) as cache:
            tenants = cache.tenants() if options.tenant is None else (options.tenant,)
            entries = [entry for tenant in tenants for entry in cache.entries(tenant=tenant)]
        return adaptation.rows_of_entries(entries)
    rows = [row for row in read_log(options.log) if options.tenant in {None, row.scope}]
    return [
        row if row.plan is None else replace(row, plan=as_object(volatile.without(row.plan)))
        for row in rows
    ]


def _forget(options: argparse.Namespace, settings: Settings) -> int:
    there = adaptation.forget(_folder(settings))
    renewed = 0
    if there:
        renewed = _renewed(options)
    print_pairs({"forgotten": there, "embedded_anew": renewed}, as_json=options.json)
    return 0


def _renewed(options: argparse.Namespace) -> int:
    """Embed all entries with the embedder that is in force now; return how many."""
    with cache_of(options) as cache:
        return cache.embed_anew()


def _folder(settings: Settings) -> Path:
    folder = difference_folder(settings)
    assert folder is not None  # noqa: S101 - the option has a default
    return folder
