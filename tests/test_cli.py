import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semcache.cli import main
from semcache.demo.prompts import CASES, Case, Query
from semcache.settings import Settings
from semcache.testing import HashEmbedder

SALES_2024 = "Show me total sales in 2024 by category"
SALES_2023 = "Show me total sales in 2023 by category"

Run = Callable[..., tuple[int, str, str]]


def _hashes(_settings: Settings) -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where nothing is, and without the weights: they take seconds to load."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("semcache.wiring._embedder", _hashes)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
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


def test_the_same_question_of_another_year_hits_in_a_later_process(run: Run) -> None:
    run("ask", SALES_2024)
    _, out, _ = run("ask", SALES_2023)
    assert out.splitlines()[-1].startswith("template hit, ")


def test_the_cache_is_kept_below_indexes_of_the_checkout(run: Run, tmp_path: Path) -> None:
    run("ask", SALES_2024)
    assert [path.name for path in (tmp_path / "indexes").iterdir()] == ["default"]


def test_tenants_and_directories_are_apart(run: Run) -> None:
    run("ask", SALES_2024)
    assert _json(run, "ask", SALES_2024, "--tenant", "acme")["tier"] == "planned"
    assert _json(run, "ask", SALES_2024, "--directory", "elsewhere")["tier"] == "planned"
    assert _json(run, "ask", SALES_2024)["tier"] == "template"


def test_explain_shows_why_it_misses_and_then_why_it_hits(run: Run) -> None:
    assert run("explain", SALES_2024)[1].startswith("MISS ")
    run("ask", SALES_2024)
    assert run("explain", SALES_2023)[1].startswith("HIT template ")
    assert _json(run, "explain", SALES_2023)["hit"] is True


def test_stats_count_hits_and_misses_over_processes(run: Run) -> None:
    run("ask", SALES_2024)
    run("ask", SALES_2023)
    counted = _json(run, "stats")
    assert counted["entries"] == 1
    assert counted["hits"] == {"template": 1}
    assert "entries: 1" in run("stats")[1]


def test_list_shows_id_key_and_prompt(run: Run) -> None:
    assert run("list") == (0, "", "")
    run("ask", SALES_2024)
    (entry,) = _json(run, "list")
    out = run("list")[1]
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
        (("ask",), "semcache ask --help"),
        (("ask", SALES_2024, "--api-key", "x"), "--api-key"),
        (("demo", "--functions", "own:catalog"), "--functions"),
        (("remove", "nothing"), "semcache list"),
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


@pytest.fixture
def two_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.cli.CASES", CASES[:2])


def test_the_demo_finds_no_wrong_answer_and_refuses_nothing(run: Run) -> None:
    done = _json(run, "demo")
    results, tally = done["prompts"], done["tally"]
    assert [r for r in results if not r["right"]] == []
    assert (tally["prompts"], tally["wrong"], tally["refused"]) == (len(CASES), 0, 0)
    assert tally["hits"] > tally["planned"]


@pytest.mark.usefixtures("two_cases")
def test_the_demo_prints_a_row_for_each_prompt_and_what_it_came_to(run: Run) -> None:
    status, out, err = run("demo")
    first, second, last = out.splitlines()
    assert (status, err) == (0, "")
    assert first.split()[:2] == ["ok", "planned"]
    assert second.split()[:2] == ["ok", "template"]
    assert last.startswith("2 prompts: 1 hits, 1 plans made, 0 wrong, 0 refused, ")


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
    wrong = Case(SALES_2024, Query("number", "SELECT count(*) FROM customers"))
    monkeypatch.setattr("semcache.cli.CASES", (CASES[0], wrong))
    status, out, _ = run("demo")
    assert status == 1
    assert out.splitlines()[1].startswith("WRONG")
    assert ", 1 wrong, " in out.splitlines()[-1]


def test_the_demo_reports_what_cannot_be_planned(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = Case("Forecast the weather on Mars", CASES[0].query, CASES[0].values)
    monkeypatch.setattr("semcache.cli.CASES", (CASES[0], beyond))
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
