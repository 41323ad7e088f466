"""`semcache doctor`, `verify`, `compact`, `migrate`, `warm` and `warm-up`."""

import argparse
import os
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.cache.warm_up import WarmUp
from semcache.canonical import Json, plain
from semcache.commands.options import (
    add_command,
    add_common,
    add_database,
    add_directory,
    cache_of,
    encryption_key,
    existing_cache_of,
    place_of,
)
from semcache.commands.output import WRONG, print_json, print_pairs, progress
from semcache.errors import InvalidInput, StoreUnavailable, WeightsUnavailable
from semcache.settings import Settings
from semcache.stores.disk.directory import existing
from semcache.stores.disk.sidecar import VIEWS, SnapshotDirectory
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.upkeep import adaptation
from semcache.upkeep.checks import sound
from semcache.upkeep.contents import Verified, verify
from semcache.upkeep.doctor import examine, examine_database
from semcache.upkeep.migrate import compact, migrate
from semcache.upkeep.warm import Warmed, warm
from semcache.wiring import SystemClock, open_embedder, open_plan_cache, open_store
from semcache.wiring.caches import RESPONSES, open_journal
from semcache.wiring.models import difference_folder, difference_keys

if TYPE_CHECKING:
    from semcache.commands.options import Commands

KEY = "SEMCACHE_ENCRYPTION_KEY"


def add(commands: "Commands") -> None:
    """Add the commands that keep a cache in order."""
    options = add_command(commands, "doctor", _doctor)
    options.add_argument("--repair", action="store_true", help="put right what can be")
    options.add_argument(
        "--no-embedder", action="store_true", help="load no weights: look at no vectors"
    )
    _add_place(options)
    add_database(options)
    options = add_command(commands, "verify", _verify)
    _add_place(options)
    add_database(options)
    _add_place(add_command(commands, "compact", _compact))
    options = add_command(commands, "migrate", _migrate)
    options.add_argument("source", metavar="FROM", help="directory of a cache, or postgresql://…")
    options.add_argument("target", metavar="TO", help="an empty or a new one, of either kind")
    for name, whose in (("--from-key", "FROM"), ("--to-key", "TO")):
        options.add_argument(
            name,
            metavar="VARIABLE",
            help=f"environment variable with the encryption key of {whose} (default: {KEY})",
        )
    options.add_argument("--json", action="store_true", help="print JSON")
    options = add_command(commands, "warm", _warm)
    options.add_argument("file", type=Path, help="one prompt and its plan a line")
    add_common(options)
    options.set_defaults(tenant=None)
    options = add_command(commands, "warm-up", _warm_up)
    add_common(options)
    options.set_defaults(tenant=None)


def _add_place(options: argparse.ArgumentParser) -> None:
    add_directory(options)
    options.add_argument("--json", action="store_true", help="print JSON")


def _doctor(options: argparse.Namespace) -> int:
    settings = place_of(options)
    embedder = None if options.no_embedder else open_embedder(settings)
    examined = partial(examine, options.directory)
    if settings.database:
        examined = partial(examine_database, settings.database, schema=settings.database_schema)
    checks = examined(
        clock=SystemClock(),
        embedder=embedder,
        encryption_key=settings.encryption_key,
        repair=options.repair,
    )
    if options.json:
        listed: list[Json] = [check.to_dict() for check in checks]
        print_json({"sound": sound(checks), "checks": listed})
    else:
        print("\n".join(map(str, checks)))
    return 0 if sound(checks) else WRONG


def _verify(options: argparse.Namespace) -> int:
    settings = Settings.load(environ=os.environ, database=options.database)
    if not settings.database:
        settings = replace(settings, directory=existing(options.directory))
    there = settings.encryption_key or settings.database  # no snapshots of its own beside it
    shelf = None if there else SnapshotDirectory(options.directory / VIEWS)
    with closing(open_store(settings)) as store:
        done = verify(
            store,
            embedder=open_embedder(settings).fingerprint,
            make_index=FaissIndex,
            snapshots=shelf,
        )
    summary = f"{done.entries} entries, {done.tenants} tenants, {len(done.problems)} problems"
    return _tell(options, done, done.problems, summary)


def _tell(
    options: argparse.Namespace,
    done: Verified | Warmed | WarmUp,
    bad: Iterable[object],
    summary: str,
) -> int:
    """Print what was `bad`, line by line, and a summary, or all as JSON; return the status."""
    lines = [*map(str, bad)]
    if options.json:
        print_json(plain(asdict(done)))
    else:
        print("\n".join([*lines, summary]))
    return WRONG if lines else 0


def _compact(options: argparse.Namespace) -> int:
    done = compact(options.directory, clock=SystemClock(), encryption_key=encryption_key())
    print_pairs(asdict(done), as_json=options.json)
    return 0


def _migrate(options: argparse.Namespace) -> int:
    _refuse_same(options.source, options.target)
    there = _settings(options.source, _key(options.from_key, "--from-key"), there=True)
    to = _settings(options.target, _key(options.to_key, "--to-key"), there=False)
    _make_corrections(there)
    with ExitStack() as stack:
        source, target = (stack.enter_context(closing(open_store(one))) for one in (there, to))
        done = migrate(source, target)
    passed_over: list[Json] = [*done.passed_over]
    beside = [there.directory and there.directory / RESPONSES]  # forgotten an hour after their use
    trained, place = difference_folder(there), difference_folder(to)
    if trained is None or place is None:
        beside.append(trained)
    else:
        decrypt, encrypt = difference_keys(there)[1], difference_keys(to)[0]
        try:
            adaptation.copy(trained, place, decrypt=decrypt, encrypt=encrypt)
        except WeightsUnavailable as error:
            passed_over.append(str(error))
    left: list[Json] = [folder.name for folder in beside if folder and folder.exists()]
    lists: dict[str, Json] = {"passed_over": passed_over, "left_behind": left}
    print_pairs({**asdict(done), **lists}, as_json=options.json)
    return WRONG if passed_over else 0


def _make_corrections(settings: Settings) -> None:
    """Make what waits beside a store: a copy without it would serve what somebody called wrong."""
    journal = open_journal(settings)
    if journal is None or not journal.texts():
        return
    open_plan_cache(settings).close()
    if journal.texts():
        raise StoreUnavailable(
            f"corrections wait beside {str(settings.directory)!r}, which cannot be written, and a "
            "copy would serve what they take back; try again when it can be written"
        )


def _refuse_same(source: str, target: str) -> None:
    """Refuse to copy a cache onto itself."""
    same = source == target
    if not same and Path(source).is_dir() and Path(target).is_dir():
        same = Path(source).samefile(target)
    if same:
        raise InvalidInput(f"{target!r} is FROM and TO at once; name another place to copy to")


def _key(variable: str | None, option: str) -> str:
    """Return the key in a variable of the environment; empty: nothing is encrypted."""
    if variable is not None and not os.environ.get(variable):  # a slip would leave plans readable
        raise InvalidInput(
            f"{option} names {variable!r}, which is not set in the environment; set it to the key, "
            f"or leave {option} out where nothing is to be encrypted"
        )
    return os.environ.get(variable or KEY, "")


def _settings(place: str, key: str, *, there: bool) -> Settings:
    if place.startswith(("postgresql:", "postgres:")):
        return Settings(database=place, encryption_key=key)
    directory = existing(Path(place)) if there else Path(place)
    return Settings(directory=directory, encryption_key=key)


def _warm(options: argparse.Namespace) -> int:
    with cache_of(options) as cache:
        done = warm(
            cache, options.file, tenant=options.tenant, progress=progress(options.file.name)
        )
    bad = (f"{options.file}:{line.number}: {line.why}" for line in done.bad)
    told = f"{done.stored} stored, {done.without_plan} without a plan, {len(done.bad)} bad lines"
    return _tell(options, done, bad, told)


def _warm_up(options: argparse.Namespace) -> int:
    with existing_cache_of(options) as cache:
        done = cache.warm_up(tenants=None if options.tenant is None else [options.tenant])
    summary = f"{done.entries} entries of {done.tenants} tenants in {done.seconds:.2f} s"
    return _tell(options, done, done.failures, summary)
