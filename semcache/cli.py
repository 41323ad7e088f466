"""The command line: a thin door to `SemCache`; the only place that prints."""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import semcache as package
from semcache.binding.bind import bind
from semcache.binding.generalize import generalize
from semcache.cache.found import Hit
from semcache.cache.plan_cache import PlanCache
from semcache.cache.responses import Responses
from semcache.canonical import Json, JsonObject, dumps, loads, plain
from semcache.catalog.catalog import Catalog
from semcache.demo import operations, sales
from semcache.demo.check import Checked, Tally, checked
from semcache.demo.prompts import CASES
from semcache.errors import InvalidInput, InvalidPlan, SemCacheError
from semcache.explore.evaluate import evaluate
from semcache.explore.report import Report, pooled
from semcache.explore.tune import TRIED, recommend
from semcache.plans.checks import check, refuse
from semcache.plans.codec import FORMATS, adopt, decode
from semcache.plans.document import DocumentPlan
from semcache.plans.finding import Finding
from semcache.plans.plan import ExecutionPlan
from semcache.prompts.parameter import by_name
from semcache.semcache import SemCache
from semcache.settings import Settings
from semcache.sources.auth import Auth
from semcache.sources.functions import load
from semcache.sources.mcp import McpServer, McpServers
from semcache.sources.openapi import OpenApiService
from semcache.wiring import RESPONSES

DIRECTORY = Path("indexes/default")
"""Where a checkout keeps its cache."""
WRONG, ERROR, INTERRUPTED = 1, 2, 130
"""Exit statuses beside 0: the demo had a wrong answer or `tune` nothing to recommend, a command
failed, somebody hit Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, `WRONG`, `ERROR` or `INTERRUPTED`."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
    except BrokenPipeError:
        # `semcache list | head` closed our output; Python must not try to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SemCacheError, OSError) as error:
        _say_error(str(error) or type(error).__name__)
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _ask(options: argparse.Namespace) -> int:
    with _semcache(options) as semcache:
        answer = semcache.run(options.text, tenant=options.tenant)
    if options.json:
        _print_json(answer.to_dict())
        return 0
    found = answer.found
    how = f"{found.tier} hit" if isinstance(found, Hit) else f"planned ({found.reason})"
    print(answer.text)
    print(f"{how}, {answer.seconds * 1000:.1f} ms")
    return 0


def _explain(options: argparse.Namespace) -> int:
    with _semcache(options) as semcache:
        found = semcache.lookup(options.text, tenant=options.tenant)
    if options.json:
        _print_json(found.to_dict())
    else:
        print(found.explain())
    return 0


def _stats(options: argparse.Namespace) -> int:
    with _cache(options) as cache:
        counted = cache.stats(tenant=options.tenant)
    shown = {**asdict(counted), "hit_rate": round(counted.hit_rate, 4)}
    _print_pairs(shown, as_json=options.json)
    return 0


def _list(options: argparse.Namespace) -> int:
    with _cache(options) as cache:
        entries = cache.entries(tenant=options.tenant)
    if options.json:
        _print_json([{"id": entry.id, **entry.to_json()} for entry in entries])
        return 0
    for entry in entries:
        print(f"{entry.id}  {entry.label}  {entry.prompt!r}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    with _cache(options) as cache:
        entries = cache.entries(tenant=options.tenant)
        ids = [entry.id for entry in entries if options.entry in {entry.id, entry.label}]
        if not ids:
            raise InvalidInput(f"no entry is {options.entry!r}; `semcache list` shows id and key")
        removed = sum(cache.invalidate(tenant=options.tenant, id=entry) for entry in ids)
    _print_pairs({"removed": removed}, as_json=options.json)
    return 0


def _clear(options: argparse.Namespace) -> int:
    with _cache(options) as cache:
        removed = cache.clear(tenant=options.tenant)
    # A plan that was cleared because it was wrong must not come back from what a model once said.
    answered = options.directory / RESPONSES
    if answered.exists():
        with closing(Responses.open(answered)) as responses:
            responses.clear()
    _print_pairs({"removed": removed}, as_json=options.json)
    return 0


def _export(options: argparse.Namespace) -> int:
    with _cache(options) as cache:
        count = cache.export(options.file, tenant=options.tenant)
    _print_pairs({"exported": count}, as_json=options.json)
    return 0


def _import(options: argparse.Namespace) -> int:
    with _cache(options) as cache:
        count = cache.import_(options.file, tenant=options.tenant)
    _print_pairs({"imported": count}, as_json=options.json)
    return 0


def _demo(options: argparse.Namespace) -> int:
    with ExitStack() as stack:
        if options.directory is None:
            options.directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(closing(sales.memory()))
        semcache = stack.enter_context(_opened(options, operations.catalog(database)))
        show = stack.enter_context(_table(options))
        asked = partial(semcache.run, tenant=options.tenant)
        results: list[Checked] = []
        for case in CASES:
            results.append(checked(case, asked, database))
            show(results)
    tally = Tally.of(results)
    if options.json:
        _print_json({"prompts": [r.to_dict() for r in results], "tally": plain(asdict(tally))})
    else:
        _print_tally(tally)
    return WRONG if tally.wrong else 0


def _evaluate(options: argparse.Namespace) -> int:
    reports: list[Report] = []
    for path in options.streams:
        # The first replay's embedder serves the others: loading it takes seconds.
        cache = reports[0].cache if reports else None
        reports.append(
            evaluate(
                path,
                given=options.given,
                log=options.log,
                threshold=0.95 if options.threshold is None else options.threshold,
                max_wrong=options.max_wrong,
                embedder=cache.embedder if cache else None,
                limit=options.rows,
            )
        )
        if not options.json:
            print(reports[-1], flush=True)
    if len(reports) > 1:
        reports.append(pooled(reports))
    if options.json:
        _print_json([report.to_dict() for report in reports])
    elif len(reports) > 1:
        print("\n".join(reports[-1].lines(mistakes=0)))
    return 0


def _tune(options: argparse.Namespace) -> int:
    found = recommend(
        options.stream,
        target=options.max_wrong,
        confidence=options.confidence,
        knob=options.knob,
        given=options.given,
        log=options.log,
        limit=options.rows,
    )
    if options.json:
        _print_json(found.to_dict())
    else:
        print(found)
    return 0 if found.chosen else WRONG


def _plan_check(options: argparse.Namespace) -> int:
    plan = _plan(options)
    with ExitStack() as stack:
        catalog = _catalog(options, stack) if _names_a_source(options) else None
        findings = _findings(plan, catalog)
    if options.json:
        listed: list[Json] = [plain(asdict(finding)) for finding in findings]
        _print_json(
            {"format": plan.format, "operations": list(plan.operations()), "findings": listed}
        )
    elif findings:
        print("\n".join(map(str, findings)))
    else:
        print(f"ok: {plan.format}, calls {', '.join(plan.operations()) or 'nothing'}")
    return WRONG if findings else 0


def _plan_run(options: argparse.Namespace) -> int:
    given = loads(options.params, what="--params")
    if not isinstance(given, dict):
        raise InvalidInput(f"--params is a {type(given).__name__}; expected a JSON object")
    with ExitStack() as stack:
        catalog = _catalog(options, stack)
        schemas = {operation.name: operation.input_schema for operation in catalog}
        template = generalize(_plan(options).to_dict(), by_name(given), schemas=schemas)
        bound = bind(template, given)
        plan = adopt(bound.plan, bound.data)
        refuse(_findings(plan, catalog))
        outcome = stack.enter_context(_opened(options, catalog)).execute(plan)
    if options.json:
        _print_json({"value": outcome.value, "text": outcome.text})
    else:
        print(outcome.text)
    return 0


def _plan(options: argparse.Namespace) -> ExecutionPlan:
    try:
        return decode(options.file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidPlan(f"{str(options.file)!r} is not UTF-8 text: {error.reason}") from error


def _findings(plan: ExecutionPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    if plan.format == DocumentPlan.format:
        formats = ", ".join(known.name for known in FORMATS)
        what = f"no format that is known; expected the keys of one of: {formats}"
        return (Finding("", what, "shape"),)
    return check(plan, catalog)


def _names_a_source(options: argparse.Namespace) -> bool:
    return bool(options.functions or options.openapi or options.mcp)


def _print_tally(tally: Tally) -> None:
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


@contextmanager
def _semcache(options: argparse.Namespace) -> Iterator[SemCache]:
    """Give the cache over the caller's own operations, else over those of the demo."""
    with ExitStack() as stack:
        yield stack.enter_context(_opened(options, _catalog(options, stack)))


def _catalog(options: argparse.Namespace, stack: ExitStack) -> Catalog:
    """Return the operations of all sources that were named, else the demo's."""
    catalogs: list[Catalog] = []
    if options.functions:
        # The console script, unlike `python -m`, does not look where the caller is.
        sys.path.insert(0, str(Path.cwd()))
        catalogs.append(load(options.functions))
    token = os.environ.get("OPENAPI_TOKEN")
    for source in options.openapi:
        service = OpenApiService.open(
            source,
            auth=Auth.bearer(token) if token else None,
            base_url=options.server_url,
        )
        catalogs.append(stack.enter_context(service).catalog)
    if options.mcp:
        catalogs.append(stack.enter_context(McpServers.open(_named_servers(options))).catalog())
    if not catalogs:
        return operations.catalog(stack.enter_context(closing(sales.memory())))
    synonyms = {word: meant for catalog in catalogs for word, meant in catalog.synonyms.items()}
    closed: dict[str, list[str]] = {}
    for catalog in catalogs:
        for name, values in catalog.closed.items():
            closed.setdefault(name, []).extend(values)
    return Catalog((one for c in catalogs for one in c), closed=closed, synonyms=synonyms)


def _named_servers(options: argparse.Namespace) -> dict[str, McpServer | str]:
    servers: dict[str, McpServer | str] = {}
    for number, given in enumerate(options.mcp, start=1):
        named = re.fullmatch(r"([A-Za-z_]\w*)=(.+)", given)
        name = named[1] if named else "mcp" if number == 1 else f"mcp{number}"
        if name in servers:
            raise InvalidInput(f"two MCP servers are named {name!r}; write NAME=COMMAND_OR_URL")
        servers[name] = named[2] if named else given
    return servers


def _opened(options: argparse.Namespace, catalog: Catalog) -> SemCache:
    return SemCache.open(settings=_settings(options), catalog=catalog)


def _cache(options: argparse.Namespace) -> PlanCache:
    return PlanCache.open(options.directory)


def _settings(options: argparse.Namespace) -> Settings:
    settings = Settings.load(
        environ=os.environ,
        directory=options.directory,
        model=options.model,
        base_url=options.base_url,
        threshold=options.threshold,
    )
    if settings.base_url and not settings.model:
        raise InvalidInput("a base URL without a model does nothing; name one by --model")
    if settings.model and not (settings.api_key or settings.base_url):
        raise InvalidInput(
            f"model {settings.model!r} needs a key; set OPENAI_API_KEY, or give a --base-url"
        )
    return settings


def _print_json(value: Json) -> None:
    print(dumps(value))


def _print_pairs(pairs: JsonObject, *, as_json: bool) -> None:
    if as_json:
        _print_json(pairs)
        return
    for name, value in pairs.items():
        print(f"{name}: {value if isinstance(value, str) else dumps(value)}")


def _say_error(message: str) -> None:
    print("semcache:", " ".join(message.split()), file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        _say_error(f"{message}; see `{self.prog} --help`")
        sys.exit(ERROR)


@dataclass(frozen=True, slots=True)
class _Command:
    """A command: what runs it, what it says of itself, and its one argument, if any."""

    name: str
    run: Callable[[argparse.Namespace], int]
    says: str
    argument: str = ""
    meaning: str = ""
    plans: bool = False
    """Whether it takes the options for planning."""


_TEXT = "the prompt, in one argument"
_COMMANDS = (
    _Command("ask", _ask, "Answer a prompt; plan only if no plan fits.", "text", _TEXT, plans=True),
    _Command("explain", _explain, "Show why a prompt hits or misses.", "text", _TEXT, plans=True),
    _Command("stats", _stats, "Show what the lookups of the tenant came to."),
    _Command("list", _list, "List the cached plans of the tenant."),
    _Command("remove", _remove, "Remove plans.", "entry", "an id, or a key for every plan of it"),
    _Command("clear", _clear, "Remove all plans of the tenant, and all that models answered."),
    _Command("export", _export, "Write the plans of the tenant to a file.", "file", "to write"),
    _Command("import", _import, "Read plans of the tenant from a file.", "file", "to read"),
    _Command("demo", _demo, "Ask many prompts and check each answer against SQL.", plans=True),
)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="semcache", description="Make an execution plan once and reuse it.")
    parser.add_argument("--version", action="version", version=f"semcache {package.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        options = commands.add_parser(command.name, help=command.says, description=command.says)
        options.set_defaults(run=command.run)
        if command.argument:
            kind = Path if command.argument == "file" else str
            options.add_argument(command.argument, type=kind, help=command.meaning)
        _add_common(options, demo=command.run is _demo)
        if command.plans:
            _add_planning(options, demo=command.run is _demo)
    _add_plans(commands)
    _add_replays(commands)
    return parser


def _add_plans(commands: "argparse._SubParsersAction[_Parser]") -> None:
    says = "Check or run a plan in a file."
    plans = commands.add_parser("plan", help=says, description=says).add_subparsers(
        required=True, metavar="COMMAND"
    )
    says = "Tell everything that is wrong with a plan; of its operations, if a source is named."
    checks = plans.add_parser("check", help=says, description=says)
    checks.set_defaults(run=_plan_check)
    says = "Run a plan."
    runs = plans.add_parser("run", help=says, description=says)
    # Without a directory: running a plan caches nothing.
    runs.set_defaults(run=_plan_run, directory=None, threshold=None)
    for options in (checks, runs):
        options.add_argument("file", type=Path, help="the plan, as JSON")
        options.add_argument("--json", action="store_true", help="print JSON")
        _add_sources(options)
    runs.add_argument(
        "--params", default="{}", metavar="JSON", help="values of the plan's {{params.x}}"
    )
    _add_model(runs)


def _add_replays(commands: "argparse._SubParsersAction[_Parser]") -> None:
    says = "Replay streams against a cold cache and say how well it matched."
    options = commands.add_parser("evaluate", help=says, description=says)
    options.set_defaults(run=_evaluate)
    options.add_argument("streams", nargs="+", type=Path, metavar="STREAM", help="JSON lines")
    options.add_argument("--threshold", type=float, help="cosine to exceed (default: 0.95)")
    options.add_argument(
        "--max-wrong", type=float, help="highest share of wrong hits (default: no bound)"
    )
    _add_replay(options)
    says = "Recommend a threshold or max_wrong, with its confidence, from a stream."
    options = commands.add_parser("tune", help=says, description=says)
    options.set_defaults(run=_tune)
    options.add_argument("stream", type=Path, metavar="STREAM", help="JSON lines")
    options.add_argument(
        "--max-wrong", type=float, default=0.01, help="share of wrong hits (default: 0.01)"
    )
    options.add_argument("--confidence", type=float, default=0.95, help="default: 0.95")
    options.add_argument(
        "--knob", choices=tuple(TRIED), default="threshold", help="what to set (default: threshold)"
    )
    _add_replay(options)


def _add_replay(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--log", action="store_true", help="lines need only `text` and `plan`: a log of your own"
    )
    options.add_argument("--given", action="store_true", help="give lookups the parameters' values")
    options.add_argument("--rows", type=int, help="replay at most this many rows of each stream")
    options.add_argument("--json", action="store_true", help="print JSON")


def _add_common(options: argparse.ArgumentParser, *, demo: bool) -> None:
    kept = "a temporary directory" if demo else str(DIRECTORY)
    options.add_argument(
        "--directory",
        type=Path,
        default=None if demo else DIRECTORY,
        help=f"where the cache is kept (default: {kept})",
    )
    options.add_argument("--tenant", default="default", help="whose plans (default: default)")
    options.add_argument("--json", action="store_true", help="print JSON")


def _add_planning(options: argparse.ArgumentParser, *, demo: bool) -> None:
    if not demo:
        _add_sources(options)
    options.add_argument("--threshold", type=float, help="cosine to exceed (default: 0.95)")
    _add_model(options)


def _add_sources(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--functions",
        metavar="MODULE:NAME",
        help="your own operations: a catalog, functions, or one (default: the demo's)",
    )
    options.add_argument(
        "--openapi",
        action="append",
        default=[],
        metavar="FILE_OR_URL",
        help="operations of an OpenAPI document; OPENAPI_TOKEN is its bearer token",
    )
    options.add_argument(
        "--server-url", metavar="URL", help="address to call instead of the document's"
    )
    options.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="[NAME=]COMMAND_OR_URL",
        help="tools of an MCP server, named NAME.tool (default: mcp)",
    )


def _add_model(options: argparse.ArgumentParser) -> None:
    options.add_argument("--model", help="language model that normalizes and plans (default: none)")
    options.add_argument(
        "--base-url", help="an OpenAI-compatible server; OPENAI_API_KEY is its key"
    )
