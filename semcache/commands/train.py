"""`semcache train`."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.binding.volatile import Volatile
from semcache.canonical import as_object
from semcache.commands.options import add_command, add_common, cache_of, existing_cache_of, place_of
from semcache.commands.output import WRONG, print_json, print_pairs, progress
from semcache.errors import InvalidInput
from semcache.explore.streams import Row, check_count, read_log
from semcache.settings import Settings
from semcache.upkeep import adaptation
from semcache.wiring.models import difference_folder, difference_keys

if TYPE_CHECKING:
    from semcache.commands.options import Commands


def add(commands: "Commands") -> None:
    """Add the command that trains the embedder."""
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
    options.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATH",
        help="field of plans that is new each time, as `thought` or `/tool_calls/*/id`; repeatable",
    )
    add_common(options)
    options.set_defaults(tenant=None)


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
