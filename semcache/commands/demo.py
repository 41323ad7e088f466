"""`semcache demo`."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semcache.canonical import Json, dumps, plain
from semcache.commands.options import add_command, add_common, add_planning, settings_of
from semcache.commands.output import WRONG, print_json, print_run
from semcache.demo import operations, sales
from semcache.demo.cases import CASES, Case, Checked, DemoTally, SalesQuery, checked
from semcache.runs.tree import Run
from semcache.semcache import SemCache

if TYPE_CHECKING:
    from semcache.commands.options import Commands


def add(commands: "Commands") -> None:
    """Add the command that shows what semcache does."""
    options = add_command(commands, "demo", _demo)
    add_common(options, demo=True)
    add_planning(options, demo=True)


def _demo(options: argparse.Namespace) -> int:
    with ExitStack() as stack:
        if options.directory is None:
            options.directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(closing(sales.memory()))
        settings = replace(settings_of(options), reflection=True)
        catalog = operations.catalog(database)
        semcache = stack.enter_context(SemCache.open(settings=settings, catalog=catalog))
        show = stack.enter_context(_table(options))
        asked = partial(semcache.run, tenant=options.tenant)
        results: list[Checked] = []
        for case in CASES:
            results.append(checked(case, asked, database))
            show(results)
        plant_fault(semcache, tenant=options.tenant)
        healed = checked(FAULTY_CASE, asked, database)
        run = semcache.runs.latest(tenant=options.tenant)
    tally = DemoTally.of(results)
    if options.json:
        tree = run.to_dict() if run is not None else None
        print_json({
            "prompts": [r.to_dict() for r in results],
            "tally": plain(asdict(tally)),
            "healed": {**healed.to_dict(), "tree": tree},
        })  # fmt: skip
    else:
        _print_healed(healed, run)
        _print_tally(tally)
    return WRONG if tally.wrong or healed.wrong else 0


def _print_healed(healed: Checked, run: Run | None) -> None:
    print(f"A plan that breaks when it runs is looked at and made anew ({_cells(healed)[-1]}):")
    if run is not None:
        print_run(run, to=sys.stdout)


def _print_tally(tally: DemoTally) -> None:
    print(
        f"{tally.prompts} prompts: {tally.hits} hits, {tally.planned} plans made, "
        f"{tally.wrong} wrong, {tally.refused} refused, {tally.seconds:.2f} s"
    )


@contextmanager
def _table(options: argparse.Namespace) -> Iterator[Callable[[list[Checked]], None]]:
    """Give what shows the results so far, each time that one more is there."""
    if options.json:
        yield lambda _: None
    elif sys.stdout.isatty() and find_spec("rich"):
        with _rich_table() as show:
            yield show
    else:
        yield lambda results: print(_row(results[-1]), flush=True)


def _row(result: Checked) -> str:
    prompt, way, milliseconds, answer, verdict = _cells(result)
    return f"{verdict:7}  {way:8}  {milliseconds:>8} ms  {prompt:58}  {answer}"


def _cells(result: Checked) -> tuple[str, str, str, str, str]:
    """Return prompt, tier, milliseconds, answer and verdict, short enough for a table."""
    verdict = "WRONG" if result.wrong else "refused" if result.finding else "ok"
    shown = result.finding or dumps(_inner(result.value))
    milliseconds = f"{result.seconds * 1000:.1f}"
    return _short(result.prompt, 58), result.way, milliseconds, _short(shown, 50), verdict


def _inner(value: Json) -> Json:
    return value["answer"] if isinstance(value, dict) and "answer" in value else value


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


@contextmanager
def _rich_table() -> Iterator[Callable[[list[Checked]], None]]:
    """Give what redraws the last rows of a table; the whole table stays when it is done."""
    # An extra: without it the same rows are plain lines.
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.live import Live  # noqa: PLC0415 - see above
    from rich.table import Table  # noqa: PLC0415 - see above

    console = Console()
    everything: list[Checked] = []

    def drawn(results: Sequence[Checked]) -> Table:
        table = Table("prompt", "tier", "ms", "answer", "ok")
        for result in results:
            *cells, verdict = _cells(result)
            color = {"ok": "green", "refused": "yellow"}.get(verdict, "red")
            table.add_row(*cells, verdict, style=None if verdict == "ok" else color)
        return table

    with Live(console=console, transient=True) as live:

        def show(results: list[Checked]) -> None:
            everything[:] = results
            live.update(drawn(results[-max(console.height - 5, 1) :]))

        yield show
    console.print(drawn(everything))


# A plan that breaks when it runs: what the demo heals.

FAULTY_CASE = Case(
    "Show me total sales in 2024 by payment method",
    SalesQuery(
        "groups",
        "SELECT payment_method, sum(amount) AS sum_amount FROM orders"
        " WHERE strftime('%Y', date) = ? GROUP BY payment_method",
    ),
    ("2024",),
)
"""The prompt, and how to know its answer."""

FAULTY_PLAN: dict[str, Any] = {
    "start_node": {"route": "sales"},
    "sales": {
        "operation": "query_sales",
        "input": {
            "filters": [{"field": "year", "value": 2024}],
            "aggregates": [{"field": "amount", "function": "sum"}],
            "group_by": ["payment_method"],
        },
        "route": "order",
    },
    "order": {
        "operation": "get_order",
        "input": {"order_id": "$.sales[0].order_of_this_group"},
        "route": "end",
    },
    "end": {"completed": True, "vars": {"answer": "$.order"}},
}
"""Looks well, and reads what no row has: `get_order` is called with null."""


def plant_fault(semcache: SemCache, *, tenant: str) -> None:
    """Store the plan for its prompt, as if a planner had made it."""
    semcache.cache.store(FAULTY_CASE.prompt, FAULTY_PLAN, params={"year": 2024}, tenant=tenant)
