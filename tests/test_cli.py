import io
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from semcache import PlanCache, SemCache
from semcache.__main__ import run as run_semcache
from semcache.cache.feedback.correction import Correction
from semcache.commands import SUMMARIES
from semcache.commands.cli import main
from semcache.demo import operations, sales
from semcache.demo.cases import CASES, Case, SalesQuery
from semcache.stores.disk.sidecar import FileJournal
from semcache.testing import HashEmbedder
from tests.listening import listening

SALES_2024 = "Show me total sales in 2024 by category"
SALES_2023 = "Show me total sales in 2023 by category"

SOURCES = {"--functions", "--openapi", "--mcp", "--demo"}
Run = Callable[..., tuple[int, str, str]]


def _hashes(*_: object, **__: object) -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where nothing is, and without the weights: they take seconds to load."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("semcache.wiring.models.MiniLMEmbedder", _hashes)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        asks = arguments[:1] in {("ask",), ("explain",), ("answer",)}
        if (asks or arguments[:2] == ("plan", "run")) and SOURCES.isdisjoint(arguments):
            arguments = (*arguments, "--demo")
        try:
            status = main(arguments)
        except SystemExit as stopped:
            status = int(stopped.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def _json(run: Run, *arguments: str) -> Any:
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_ask_prints_the_answer_then_tier_and_time(run: Run) -> None:
    status, out, err = run("ask", SALES_2024)
    assert (status, err) == (0, "")
    *answer, last = out.splitlines()
    assert "Electronics" in "".join(answer)
    assert last.startswith("planned (")
    assert last.endswith(" ms")


def test_tenants_and_directories_are_apart(run: Run, tmp_path: Path) -> None:
    run("ask", SALES_2024)
    assert [path.name for path in (tmp_path / "indexes").iterdir()] == ["default"]
    assert _json(run, "ask", SALES_2024, "--tenant", "acme")["tier"] == "planned"
    assert _json(run, "ask", SALES_2024, "--directory", "elsewhere")["tier"] == "planned"
    assert _json(run, "ask", SALES_2024)["tier"] == "template"


def test_explain_shows_why_it_misses_and_then_why_it_hits_and_is_not_counted(run: Run) -> None:
    assert run("explain", SALES_2024)[1].startswith("MISS ")
    run("ask", SALES_2024)
    assert run("explain", SALES_2023)[1].startswith("HIT template ")
    assert _json(run, "explain", SALES_2023)["hit"] is True
    assert _json(run, "stats")["lookups"] == 1


def test_stats_count_hits_and_misses_over_processes(run: Run) -> None:
    run("ask", SALES_2024)
    run("ask", SALES_2023)
    counted = _json(run, "stats")
    assert counted["entries"] == 1
    assert counted["hits"] == {"template": 1}
    told = run("stats")[1]
    assert "entries: 1" in told
    assert "saved: no calls of a model: rules made the plans" in told


def test_list_shows_id_key_and_prompt(run: Run) -> None:
    run("ask", SALES_2024)
    (entry,) = _json(run, "list")
    out = run("list")[1]
    assert run("list", "--tenant", "acme") == (0, "", "")
    assert out.startswith(entry["id"])
    assert entry["key"] in out
    assert repr(SALES_2024) in out


@pytest.mark.parametrize("name", ["id", "key"])
def test_remove_takes_an_id_or_a_key(run: Run, name: str) -> None:
    run("ask", SALES_2024)
    (entry,) = _json(run, "list")
    assert _json(run, "remove", entry[name]) == {"removed": 1}
    assert _json(run, "list") == []


def test_clear_empties_one_tenant(run: Run) -> None:
    run("ask", SALES_2024)
    run("ask", SALES_2024, "--tenant", "acme")
    assert run("clear") == (0, "removed: 1\n", "")
    assert _json(run, "list") == []
    assert len(_json(run, "list", "--tenant", "acme")) == 1


def test_plans_travel_by_a_file(run: Run) -> None:
    run("ask", SALES_2024)
    assert _json(run, "export", "plans.json") == {"exported": 1}
    assert _json(run, "import", "plans.json", "--directory", "other") == {"imported": 1}
    assert _json(run, "ask", SALES_2023, "--directory", "other")["tier"] == "template"


OWN = '''
from semcache.sources.functions import operation

@operation(effect="read")
def get_weather(city: str) -> dict[str, str]:
    """Get the weather of a city."""
    return {"city": city, "sky": "clear"}

catalog = [get_weather]
'''


def test_own_functions_answer_instead_of_the_demo(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own_weather.py").write_text(OWN, encoding="utf-8")
    functions = ("--functions", "own_weather:catalog")
    first = _json(run, "ask", 'Get the weather for city "Oslo"', *functions)
    assert first["value"] == {"answer": {"city": "Oslo", "sky": "clear"}}
    again = _json(run, "ask", 'Get the weather for city "Lima"', *functions)
    assert again["value"] == {"answer": {"city": "Lima", "sky": "clear"}}
    assert again["tier"] == "template"


SHELVES = """
from semcache import operation

@operation(effect="read")
def list_books() -> list[dict[str, str]]:
    "List the books."
    return [{"title": "b"}, {"title": "a"}]

catalog = [list_books]
"""


# specs: E-13
def test_planning_stops_at_the_steps_and_goes_on_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own_shelves.py").write_text(SHELVES, encoding="utf-8")
    functions = ("--functions", "own_shelves:catalog")
    prompt = "list books and count them"
    told = _json(run, "plan", "steps", prompt, *functions)
    (tmp_path / "steps.json").write_text(json.dumps(told), encoding="utf-8")
    assert f"{prompt}  [active]" in run("plan", "steps", prompt, *functions)[1]
    status, out, err = run("plan", "resume", "steps.json", *functions)
    assert (status, err) == (0, "")
    assert out == f"routes, calls data.count, list_books\nKept for {prompt!r}\n"
    answer = _json(run, "ask", prompt, *functions)
    assert (answer["value"], answer["planned"]) == ({"answer": 2}, False)
    assert run("plan", "resume", "none.json", *functions)[0] == 2


INVOICES = {
    "openapi": "3.1.0",
    "info": {"title": "Invoices", "version": "1"},
    "paths": {
        "/invoices/{number}": {
            "get": {
                "operationId": "get_invoice",
                "summary": "Get an invoice.",
                "parameters": [
                    {"name": "number", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {"200": {"description": "the invoice"}},
            }
        }
    },
}


@pytest.fixture
def invoices() -> Iterator[str]:
    """The address of a service that tells the path and the credentials of each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = json.dumps({"path": self.path, "auth": self.headers["Authorization"]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
            pass

    with listening(Handler) as url:
        yield url


def test_an_openapi_document_answers_instead_of_the_demo(
    run: Run, tmp_path: Path, invoices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAPI_TOKEN", "t0ken")
    (tmp_path / "invoices.json").write_text(json.dumps(INVOICES), encoding="utf-8")
    source = ("--openapi", "invoices.json", "--server-url", invoices)
    first = _json(run, "ask", "Get the invoice INV-7", *source)
    again = _json(run, "ask", "Get the invoice INV-8", *source)
    answers = [asked["value"]["answer"] for asked in (first, again)]
    assert answers == [
        {"path": "/invoices/INV-7", "auth": "Bearer t0ken"},
        {"path": "/invoices/INV-8", "auth": "Bearer t0ken"},
    ]
    assert again["tier"] == "template"


WEATHER = """
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

app = MCPServer("weather")

@app.tool(annotations=ToolAnnotations(readOnlyHint=True))
def get_weather(city: str) -> dict[str, str]:
    '''Get the weather of a city.'''
    return {"city": city, "sky": "clear"}

app.run()
"""


def test_tools_of_an_mcp_server_stand_beside_own_functions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "weather_server.py").write_text(WEATHER, encoding="utf-8")
    (tmp_path / "own_sky.py").write_text(OWN.replace("weather", "sky"), encoding="utf-8")
    sources = (
        "--mcp",
        f"north={sys.executable} weather_server.py",
        "--functions",
        "own_sky:catalog",
    )
    there = _json(run, "ask", 'Get the weather for city "Oslo"', *sources)
    here = _json(run, "ask", 'Get the sky for city "Oslo"', *sources)
    assert there["plan"]["call"]["operation"] == "north.get_weather"
    assert here["plan"]["call"]["operation"] == "get_sky"
    assert there["value"] == {"answer": {"city": "Oslo", "sky": "clear"}}


COUNT = {
    "start_node": {"route": "count"},
    "count": {
        "operation": "query_sales",
        "input": {
            "filters": [{"field": "state", "operator": "=", "value": "{{params.state}}"}],
            "aggregates": [{"function": "count"}],
        },
        "route": "end",
    },
    "end": {"completed": True, "vars": {"answer": "$.count.data"}},
}


def _written(tmp_path: Path, plan: object) -> str:
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return "plan.json"


def test_a_plan_that_is_fine_is_told_so(run: Run, tmp_path: Path) -> None:
    status, out, err = run("plan", "check", _written(tmp_path, COUNT))
    assert (status, out, err) == (0, "ok: routes, calls query_sales\n", "")


def test_everything_that_is_wrong_with_a_plan_is_told_at_once(run: Run, tmp_path: Path) -> None:
    wrong = {**COUNT, "start_node": {"route": "nowhere"}, "lost": {"route": "end"}}
    status, out, _ = run("plan", "check", _written(tmp_path, wrong))
    assert status == 1
    assert "nowhere" in out
    assert len(out.splitlines()) > 1
    status, out, _ = run("plan", "check", "plan.json", "--json")
    assert (status, json.loads(out)["format"]) == (1, "routes")
    assert {"path", "what", "code"} == set(json.loads(out)["findings"][0])


def test_operations_of_a_plan_are_checked_against_the_source_that_is_named(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "own_sun.py").write_text(OWN, encoding="utf-8")
    plan = _written(tmp_path, COUNT)
    status, out, _ = run("plan", "check", plan, "--functions", "own_sun:catalog")
    assert status == 1
    assert "query_sales" in out


def test_a_plan_runs_with_its_values_and_caches_nothing(run: Run, tmp_path: Path) -> None:
    plan = _written(tmp_path, COUNT)
    done = _json(run, "plan", "run", plan, "--params", '{"state": "OH"}')
    asked = _json(run, "ask", "How many sales were there in Ohio?", "--directory", "asked")
    assert done["value"]["answer"] == asked["value"]["answer"]
    assert not (tmp_path / "indexes").exists()


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (json.dumps(COUNT), (), "state"),
        (json.dumps(COUNT), ("--params", "[1]"), "--params"),
        (
            json.dumps({**COUNT, "start_node": {"route": "x"}}),
            ("--params", '{"state": "OH"}'),
            "x",
        ),
        ("[1]", (), "object"),
        ("{", (), "JSON"),
        ('{"a": 1}', (), "no format that is known"),
    ],
    ids=["no values", "bad values", "broken", "list", "no json", "no plan"],
)
def test_a_plan_that_cannot_run_is_refused(
    run: Run, tmp_path: Path, text: str, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    status, out, err = run("plan", "run", "plan.json", *options)
    assert (status, out) == (2, "")
    assert says in err


BEYOND_RULES = "What did we take in during 2024?"
SCHEMA = {
    "action": "summarize",
    "entities": ["sale"],
    "params": {"year": 2024, "amount": {"aggregate": "sum"}},
    "mentions": {"year": "2024"},
}


def test_a_model_reads_what_rules_cannot_and_is_asked_once(
    run: Run, openai_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    openai_server.says(json.dumps({"workflow_type": "sequential", "steps": [{"ps": SCHEMA}]}))
    model = ("--model", "scripted-1", "--base-url", openai_server.base_url)
    first = _json(run, "ask", BEYOND_RULES, *model)
    again = _json(run, "ask", BEYOND_RULES.replace("2024", "2023"), *model)
    assert (first["tier"], again["tier"]) == ("planned", "template")
    assert first["value"] != again["value"]
    (request,) = openai_server.requests
    assert request.headers["authorization"] == "Bearer sk-secret"


# specs: B-7
def test_a_second_identical_ask_makes_no_model_call_at_all(run: Run, openai_server: Any) -> None:
    openai_server.says(json.dumps({"workflow_type": "sequential", "steps": [{"ps": SCHEMA}]}))
    model = ("--model", "scripted-1", "--base-url", openai_server.base_url)
    first = _json(run, "ask", BEYOND_RULES, *model)
    asked = len(openai_server.requests)
    again = _json(run, "ask", BEYOND_RULES, *model, "--tree")
    assert (asked, len(openai_server.requests)) == (1, 1)
    assert (again["planned"], again["text"]) == (False, first["text"])
    assert "model_calls" not in again["tree"]


def test_ask_shows_the_tree_of_the_run(run: Run) -> None:
    run("ask", SALES_2024)
    status, out, err = run("ask", SALES_2023, "--tree")
    assert (status, err) == (0, "")
    assert out.splitlines()[2].startswith(f"✓ {SALES_2023}")
    assert "    ├── ✓ call" in out
    assert "operation query_sales" in out


def test_ask_shows_the_tree_of_a_run_that_failed(run: Run) -> None:
    status, out, err = run("ask", "Sail around Cape Horn", "--tree")
    assert (status, out) == (2, "")
    assert err.startswith("✗ Sail around Cape Horn")
    assert "└── ✗ plan" in err


def test_clear_forgets_what_models_answered_too(run: Run, openai_server: Any) -> None:
    schema = json.dumps({"workflow_type": "sequential", "steps": [{"ps": SCHEMA}]})
    openai_server.says(schema, schema)
    model = ("--model", "scripted-1", "--base-url", openai_server.base_url)
    run("ask", BEYOND_RULES, *model)
    run("clear")
    run("ask", BEYOND_RULES, *model)
    assert len(openai_server.requests) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ask", BEYOND_RULES), "take in"),
        (("ask", BEYOND_RULES, "--model", "gpt-4o-mini"), "OPENAI_API_KEY"),
        (("ask", BEYOND_RULES, "--base-url", "http://127.0.0.1:1/v1"), "--model"),
        (("ask", " "), "prompt"),
        (("ask", SALES_2024, "--threshold", "7"), "threshold"),
        (("ask", SALES_2024, "--threshold", "high"), "threshold"),
        (("ask", SALES_2024, "--functions", "nowhere:catalog"), "nowhere"),
        (("ask", SALES_2024, "--functions", "nowhere"), "module:name"),
        (("ask", SALES_2024, "--openapi", "absent.yaml"), "absent.yaml"),
        (("ask", SALES_2024, "--mcp", "/no/such/server"), "/no/such/server"),
        (("ask", SALES_2024, "--mcp", "a=cat", "--mcp", "a=cat"), "NAME="),
        (("plan", "check", "absent.json"), "absent.json"),
        (("plan",), "semcache plan --help"),
        (("explain",), "semcache explain --help"),
        (("ask", SALES_2024, "--api-key", "x"), "--api-key"),
        (("demo", "--functions", "own:catalog"), "--functions"),
        (("remove", "nothing"), "no cache at 'indexes/default'"),
        (("import", "absent.json"), "absent.json"),
        (("list", "--directory", "foreign"), "foreign"),
        (("dance",), "semcache --help"),
        ((), "semcache --help"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("mine", encoding="utf-8")
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("semcache: ")
    assert err.count("\n") == 1
    assert says in err


def test_what_is_removed_must_be_there(run: Run) -> None:
    run("ask", SALES_2024)
    status, _, err = run("remove", "nothing")
    assert (status, "semcache list" in err) == (2, True)


def test_the_environment_names_the_directory_where_no_option_does(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ask", SALES_2024)
    run("ask", SALES_2023, "--directory", "other", "--tenant", "acme")
    monkeypatch.setenv("SEMCACHE_DIRECTORY", "other")
    assert len(_json(run, "list", "--tenant", "acme")) == 1
    assert len(_json(run, "list", "--directory", "indexes/default")) == 1


@pytest.fixture
def two_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.commands.demo.CASES", CASES[:2])


def test_the_demo_finds_no_wrong_answer_and_refuses_nothing(run: Run) -> None:
    done = _json(run, "demo")
    results, tally = done["prompts"], done["tally"]
    assert [r for r in results if not r["right"]] == []
    assert (tally["prompts"], tally["wrong"], tally["refused"]) == (len(CASES), 0, 0)
    assert tally["hits"] > tally["planned"]


@pytest.mark.usefixtures("two_cases")
def test_the_demo_prints_a_row_for_each_prompt_and_what_it_came_to(run: Run) -> None:
    status, out, err = run("demo")
    first, second, *healed, last = out.splitlines()
    assert (status, err) == (0, "")
    assert first.split()[:2] == ["ok", "planned"]
    assert healed[0] == "A plan that breaks when it runs is looked at and made anew (ok):"
    assert second.split()[:2] == ["ok", "template"]
    assert last.startswith("2 prompts: 1 hits, 1 plans made, 0 wrong, 0 refused, ")


# specs: B-8
@pytest.mark.usefixtures("two_cases")
def test_the_demo_heals_a_plan_that_breaks_and_the_tree_shows_how(run: Run) -> None:
    healed = _json(run, "demo")["healed"]
    assert (healed["right"], healed["way"]) == (True, "planned")
    steps = [(step["name"], step["status"]) for step in healed["tree"]["children"]]
    assert steps == [
        ("lookup", "completed"), ("execute", "failed"), ("reflection on execute", "completed"),
        ("execute (retry 1)", "completed"),
    ]  # fmt: skip
    assert healed["tree"]["children"][2]["notes"]["decision"] == "plan"


@pytest.mark.usefixtures("two_cases")
def test_the_demo_draws_a_table_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    screen = _Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert run("demo")[0] == 0
    drawn = screen.getvalue()
    assert drawn.count("planned") >= 1
    assert drawn.rstrip().splitlines()[-1].startswith("2 prompts: 1 hits")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_demo_exits_with_1_if_an_answer_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Case(SALES_2024, SalesQuery("number", "SELECT count(*) FROM customers"))
    monkeypatch.setattr("semcache.commands.demo.CASES", (CASES[0], wrong))
    status, out, _ = run("demo")
    assert status == 1
    assert out.splitlines()[1].startswith("WRONG")
    assert ", 1 wrong, " in out.splitlines()[-1]


def test_the_demo_reports_what_cannot_be_planned(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = Case("Forecast the weather on Mars", CASES[0].query, CASES[0].values)
    monkeypatch.setattr("semcache.commands.demo.CASES", (CASES[0], beyond))
    status, out, _ = run("demo")
    assert status == 0
    assert out.splitlines()[1].startswith("refused")
    assert "1 refused" in out.splitlines()[-1]


@pytest.mark.usefixtures("two_cases")
def test_the_demo_keeps_its_cache_only_where_it_is_told_to(run: Run, tmp_path: Path) -> None:
    run("demo")
    assert list(tmp_path.iterdir()) == []
    run("demo", "--directory", "kept")
    assert _json(run, "demo", "--directory", "kept")["tally"]["hits"] == 2


def test_the_module_runs_as_the_command_does() -> None:
    command = [sys.executable, "-m", "semcache", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_root())  # noqa: S603 - our own interpreter and arguments
    assert done.stdout.startswith("semcache ")


def _root() -> Path:
    return Path(__file__).parents[1]


SMALL = str(Path(__file__).parent / "data" / "small.jsonl")


def test_evaluate_reports_on_each_stream_and_on_all(run: Run, tmp_path: Path) -> None:
    with Path(SMALL).open(encoding="utf-8") as lines:
        rest = list(lines)[60:]
    (tmp_path / "rest.jsonl").write_text("".join(rest), encoding="utf-8")
    one = _json(run, "evaluate", SMALL)
    both = _json(run, "evaluate", SMALL, str(tmp_path / "rest.jsonl"), "--given")
    assert [report["name"] for report in one] == ["small"]
    assert [report["name"] for report in both] == ["small", "rest", "all"]
    assert both[2]["rows"] == both[0]["rows"] + len(rest)
    status, out, err = run("evaluate", SMALL, "--rows", "40")
    assert (status, err) == (0, "")
    assert out.startswith("small: 40 rows, text only")


def test_evaluate_tells_as_many_mistakes_as_wanted(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    plans = ["sales", *["refunds"] * 7]
    lines = [{"prompt": "sales in 2024", "plan": {"operation": name}} for name in plans]
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    told = {}
    for wanted in ((), ("--mistakes", "0"), ("--mistakes", "6")):
        out = run("evaluate", str(log), "--log", *wanted)[1]
        told[wanted[1:]] = out.count("two plans for one question")
    assert told == {(): 5, ("0",): 0, ("6",): 6}
    assert len(_json(run, "evaluate", str(log), "--log", "--mistakes", "2")[0]["mistakes"]) == 2


def _calls(order: str, number: int) -> str:
    arguments = json.dumps({"order_id": order})
    call = {"id": f"call_{number}", "function": {"name": "track", "arguments": arguments}}
    plan = {"thought": f"The {number}. time", "tool_calls": [call]}
    return json.dumps({"text": f"Where is order {order}?", "plan": plan})


def test_evaluate_ignores_fields_that_are_new_each_time(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(_calls(f"ORD-{n}", n) for n in (11, 22, 33, 44)))
    wrong = _json(run, "evaluate", str(log), "--log")[0]
    assert wrong["hit"]["count"] == wrong["wrong"]["count"] == 3
    ignored = ["--ignore", "thought", "--ignore", "/tool_calls/*/id"]
    right = _json(run, "evaluate", str(log), "--log", *ignored)[0]
    assert (right["hit"]["count"], right["wrong"]["count"]) == (3, 0)
    assert right["ceiling"]["count"] == 3


def test_evaluate_tells_what_right_hits_save(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(_calls(f"ORD-{n}", n) for n in (11, 22, 33, 44)))
    options = ["evaluate", str(log), "--log", "--ignore", "thought", "--ignore", "id"]
    cost = ["--plan-tokens", "1500", "--plan-seconds", "2", "--plan-price", "0.01"]
    assert "saved      3 plans: 4,500 tokens, 6.0 s, 0.03 money" in run(*options, *cost)[1]
    saved = _json(run, *options, *cost)[0]["saved"]
    assert saved == {"tokens": 4500.0, "seconds": 6.0, "money": 0.03}
    assert "saved" not in run(*options)[1]
    status, _, err = run(*options, "--plan-price", "-1")
    assert status == 2
    assert "no number of 0 or more" in err


def test_evaluate_refuses_a_stream_that_would_count_twice(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(Path(SMALL).read_bytes())
    for second in (SMALL, str(copy)):
        status, out, err = run("evaluate", SMALL, second)
        assert (status, out) == (2, "")
        assert "have the same rows" in err
        assert "name each stream once" in err


def test_evaluate_reads_every_stream_before_it_replays_the_first(run: Run, tmp_path: Path) -> None:
    status, out, err = run("evaluate", SMALL, str(tmp_path / "none.jsonl"))
    assert (status, out) == (2, "")
    assert "none.jsonl" in err


def test_evaluate_reads_a_log_that_has_only_prompts_and_plans(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"prompt": "sales in 2024", "plan": {"year": 2024}}\n', encoding="utf-8")
    assert _json(run, "evaluate", str(log), "--log")[0]["rows"] == 1
    status, _, err = run("evaluate", str(log))
    assert status == 2
    assert "log.jsonl:1: no field 'id'" in err


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--rows", "0", "whole number of 1 or more"),
        ("--rows", "many", "whole number of 1 or more"),
        ("--max-wrong", "0", "share between 0 and 1"),
        ("--max-wrong", "-0.5", "share between 0 and 1"),
        ("--max-wrong", "nan", "share between 0 and 1"),
        ("--max-wrong", "1%", "share between 0 and 1"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_a_replay_names_the_option_that_is_out_of_range(
    run: Run, command: str, option: str, value: str, expected: str
) -> None:
    status, out, err = run(command, SMALL, f"{option}={value}")
    assert (status, out) == (2, "")
    assert f"argument {option}: {value!r} is no {expected}" in err


def test_tune_recommends_or_says_what_it_takes(run: Run) -> None:
    found = _json(run, "tune", SMALL, "--max-wrong", "0.1")
    assert found["value"] in {trial["value"] for trial in found["trials"]}
    status, out, _ = run("tune", SMALL, "--max-wrong", "0.01", "--knob", "max_wrong")
    assert status == 1
    assert out.splitlines()[-1].startswith("recommended: none: ")


ASKING = {
    "start_node": {"route": "ask"},
    "ask": {
        "operation": "ask_user",
        "input": {"topic": "order number", "operation": "get_order", "input": "order_id"},
        "route": "get",
    },
    "get": {"operation": "get_order", "input": {"order_id": "$.ask"}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.get"}},
}


@pytest.fixture
def asking() -> None:
    with closing(sales.memory()) as database:
        catalog = operations.catalog(database)
        with SemCache.open("indexes/default", catalog=catalog, embedder=HashEmbedder()) as semcache:
            semcache.cache.store("get an order but ask me", ASKING)


@pytest.mark.usefixtures("asking")
def test_a_plan_that_asks_is_answered_at_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", _Terminal("\nORD1001\n"))
    status, out, err = run("ask", "get an order but ask me")
    assert (status, "ORD1001" in out) == (0, True)
    assert err.count("Please provide: order number") == 2
    assert "'order number' was not answered" in err
    monkeypatch.setattr("sys.stdin", _Terminal(""))
    assert run("ask", "get an order but ask me")[0] == 130


@pytest.mark.usefixtures("asking")
def test_a_plan_that_asks_in_a_script_waits_for_the_command_answer(run: Run) -> None:
    status, out, err = run("ask", "get an order but ask me")
    assert (status, err) == (3, "")
    question, how = out.splitlines()
    assert question.startswith("Please provide: order number")
    token = how.split()[-3]
    assert how == f"Answer within a day: semcache answer {token} 'order number=…'"
    status, out, _ = run("answer", token, "order number=ORD1001")
    assert (status, "ORD1001" in out) == (0, True)
    status, _, err = run("answer", token, "order number=ORD1001")
    assert status == 2
    assert "no run waits under" in err


@pytest.mark.usefixtures("asking")
def test_answers_can_be_given_with_the_prompt(run: Run) -> None:
    given = ("ask", "get an order but ask me", "--answer", "order number=ORD1001")
    assert _json(run, *given)["value"]["answer"]["order_id"] == "ORD1001"
    status, _, err = run("ask", "get an order but ask me", "--answer", "17")
    assert status == 2
    assert "'17' is no answer; expected TOPIC=TEXT" in err


# Upkeep ──────────────────────────────────────────────────────────────────────────────────────────


def test_commands_over_a_cache_keep_to_the_settings_of_the_environment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMCACHE_MAX_ENTRIES", "1")
    lines = [{"prompt": f"list {what}", "plan": {"operation": what}} for what in ("a", "b")]
    (tmp_path / "w.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("warm", "w.jsonl")[1] == "2 stored, 0 without a plan, 0 bad lines\n"
    assert [entry["prompt"] for entry in _json(run, "list")] == ["list b"]


def test_a_cache_is_warmed_verified_examined_and_compacted(run: Run, tmp_path: Path) -> None:
    good = {"prompt": "sales in 2024", "plan": {"year": "2024"}, "params": {"year": "2024"}}
    (tmp_path / "w.jsonl").write_text(f"{json.dumps(good)}\n{{\n", encoding="utf-8")
    status, out, _ = run("warm", "w.jsonl")
    assert status == 1
    assert out.splitlines()[0].startswith("w.jsonl:2: ")
    assert out.splitlines()[1] == "1 stored, 0 without a plan, 1 bad lines"
    assert run("verify")[:2] == (0, "1 entries, 1 tenants, 0 problems\n")
    assert run("warm-up")[1].startswith("1 entries of 1 tenants in ")
    assert _json(run, "warm-up", "--tenant", "nobody")["entries"] == 0
    assert _json(run, "doctor")["sound"] is True
    assert _json(run, "compact")["expired"] == 0


def test_the_doctor_says_what_is_wrong_and_repairs_it(run: Run, tmp_path: Path) -> None:
    run("ask", SALES_2024)
    (tmp_path / "indexes" / "default" / "semcache.db").chmod(0o644)
    status, out, _ = run("doctor")
    assert status == 1
    assert "warning   permissions: others can read" in out
    assert "way out: chmod -R go-rwx" in out
    status, out, _ = run("doctor", "--repair", "--no-embedder")
    assert (status, "repaired  permissions" in out) == (0, True)
    assert run("doctor")[0] == 0


@pytest.mark.parametrize("option", ["--from-key", "--to-key"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_without_a_key_does_not_make_a_copy_that_anybody_can_read(
    run: Run, monkeypatch: pytest.MonkeyPatch, option: str, value: str | None
) -> None:
    run("ask", SALES_2024)
    if value is not None:
        monkeypatch.setenv("NEW_KEY", value)
    status, _, err = run("migrate", "indexes/default", "safe", option, "NEW_KEY")
    assert (status, f"{option} names 'NEW_KEY', which is not set" in err) == (2, True)
    assert not Path("safe").exists()


def test_plans_move_to_an_encrypted_directory_and_need_its_key_there(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ask", SALES_2024)
    monkeypatch.setenv("NEW_KEY", "k" * 43)
    moved = _json(run, "migrate", "indexes/default", "safe", "--to-key", "NEW_KEY")
    assert (moved["records"], moved["passed_over"]) == (1, [])
    status, _, err = run("list", "--directory", "safe")
    assert (status, "give its key" in err) == (2, True)
    monkeypatch.setenv("SEMCACHE_ENCRYPTION_KEY", "k" * 43)
    assert len(_json(run, "list", "--directory", "safe")) == 1


def test_a_copy_is_told_what_stays_behind_and_serves_nothing_that_was_taken_back(run: Run) -> None:
    run("ask", SALES_2024)
    place = Path("indexes/default")
    (place / "responses").mkdir()
    FileJournal(place / "corrections").keep("one", Correction("clear", None).to_text())
    with closing(sqlite3.connect(place / "semcache.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        status, _, err = run("migrate", str(place), "copy")
        assert (status, "corrections wait" in err) == (2, True)
        assert not Path("copy").exists()
    copied = _json(run, "migrate", str(place), "copy")
    assert (copied["records"], copied["left_behind"]) == (0, ["responses"])


def test_what_could_not_be_cleared_yet_is_told(run: Run) -> None:
    run("ask", SALES_2024)
    place = Path("indexes/default/semcache.db")
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        status, out, _ = run("clear")
    assert (status, "pending: the store failed" in out) == (1, True)
    assert run("clear")[0] == 0


# Where operations come from ──────────────────────────────────────────────────────────────────────


def test_the_demo_is_used_only_where_it_is_asked_for(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for command in (["ask", SALES_2024], ["mcp"]):
        assert main(command) == 2
        assert "--functions, --openapi or --mcp" in capsys.readouterr().err
    assert not (tmp_path / "indexes").exists()


def test_explain_without_operations_looks_into_a_cache_as_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with PlanCache.open(tmp_path / "indexes" / "default", embedder=HashEmbedder()) as cache:
        cache.store("sales in 2024", {"call": {"year": "2024"}}, params={"year": "2024"})
    assert main(["explain", "sales in 2023"]) == 0
    assert capsys.readouterr().out.startswith("HIT template ")


# Standard input ──────────────────────────────────────────────────────────────────────────────────


def test_each_line_of_stdin_is_asked_where_no_prompt_is_given(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = f"{SALES_2024}\n\nSail around Cape Horn\n{SALES_2023}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    status, out, err = run("ask")
    assert (status, err.count("semcache: ")) == (2, 1)
    assert [line.partition(" ")[0] for line in out.splitlines()[1::2]] == ["planned", "template"]


def test_all_of_stdin_is_one_prompt_for_a_dash(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SALES_2024}\n"))
    assert _json(run, "ask", "-")["tier"] == "planned"


# Ctrl-C ──────────────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_while_the_program_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "semcache.commands.cli", Interrupted())
    assert run_semcache() == 130
    assert capsys.readouterr().err == "semcache: interrupted\n"


# What messages name ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--threshold", "7"), "--threshold"),
        (("--openapi", "shop.json", "--server-url", "host"), "--server-url"),
        (("--model", "m", "--base-url", "host"), "--base-url"),
    ],
)
def test_a_message_names_the_flag(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], named: str
) -> None:
    document = {"openapi": "3.1.0", "info": {}, "paths": {"/": {"get": {"responses": {}}}}}
    (tmp_path / "shop.json").write_text(json.dumps(document), encoding="utf-8")
    status, _, err = run("ask", SALES_2024, *arguments)
    assert (status, err.startswith(f"semcache: {named} ")) == (2, True), err


def test_completion_for_a_shell_is_printed(run: Run) -> None:
    status, out, _ = run("--print-completion", "bash")
    assert (status, "--server-url" in out) == (0, True)


# What a command loads ────────────────────────────────────────────────────────────────────────────


def _loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a process of its own has loaded at the end of a command."""
    code = (
        "import contextlib, io, sys\n"
        "from semcache.__main__ import run\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    run()\n"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(  # noqa: S603 - our own words, no shell
        command, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_and_version_load_no_command_and_no_package(option: str) -> None:
    loaded = _loaded_by(option)
    assert "semcache.commands.cli" in loaded
    assert loaded.isdisjoint({"semcache.cache", "semcache.settings", "semcache.commands.ask"})
    assert loaded.isdisjoint({"numpy", "pydantic", "jsonschema", "faiss", "shtab"})


def test_ask_loads_neither_sources_that_are_not_named_nor_torch() -> None:
    arguments = ("ask", SALES_2024, "--functions", "os:getcwd", "--directory", "cache")
    loaded = _loaded_by(*arguments)
    assert "semcache.sources.functions" in loaded
    assert not [name for name in loaded if name.startswith(("semcache.demo", "semcache.server"))]
    assert loaded.isdisjoint({"semcache.sources.openapi", "semcache.sources.mcp", "httpx", "mcp"})
    assert loaded.isdisjoint({"torch", "sentence_transformers", "openai", "scipy"})


def test_the_help_lists_each_command_with_what_it_does(run: Run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    for name, summary in SUMMARIES.items():
        assert f" {name} " in out
        assert summary.split()[0] in out


@pytest.mark.parametrize("name", SUMMARIES)
def test_each_command_that_the_help_lists_has_options_of_its_own(run: Run, name: str) -> None:
    status, out, _ = run(name, "--help")
    assert (status, out.startswith(f"usage: semcache {name}")) == (0, True)
    assert " ".join(SUMMARIES[name].split()) in " ".join(out.split())
