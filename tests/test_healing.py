"""What `SemCache.run` does about a plan that fails."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from semcache import Hit, SemCache, Settings, catalog_from, operation
from semcache.canonical import JsonObject
from semcache.errors import ExecutionError, OperationFailed
from semcache.events import EntriesRemoved, ReflectionFinished
from semcache.models.openai import OpenAIModel
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver
from tests.calling import hit

PROMPT = "yearly visits to Oslo"


def plan(name: str = "count_visits", town: str = "Oslo") -> dict[str, Any]:
    return {
        "start_node": {"route": "count"},
        "count": {"operation": name, "input": {"town": town}, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.count"}},
    }


class Office:
    """A SemCache whose operations fail as often as they are told to."""

    def __init__(self, stack: ExitStack, **more: Any) -> None:
        self.clock, self.observer = FakeClock(), RecordingObserver()
        self.errors: list[Exception] = []
        self.calls: list[str] = []

        def called(town: str) -> int:
            self.calls.append(town)
            if self.errors:
                raise self.errors.pop(0)
            return len(town)

        @operation(effect="read")
        def count_visits(town: str) -> int:
            """Yearly visits to a town."""
            return called(town)

        @operation(effect="read")
        def count_old(town: str) -> int:
            """Count as it was done before."""
            raise KeyError("column")

        @operation(effect="write")
        def order(town: str) -> int:
            """Order a trip to a town."""
            return called(town)

        settings = more.pop("settings", Settings(reflection=True))
        self.semcache = stack.enter_context(
            SemCache.open(
                catalog=catalog_from(count_visits, count_old, order),
                embedder=HashEmbedder(), clock=self.clock, observer=self.observer,
                settings=settings, **more,
            )
        )  # fmt: skip

    def store(self, body: dict[str, Any]) -> None:
        assert self.semcache.cache.store(PROMPT, body, params={"town": "Oslo"})

    def run(self, town: str = "Oslo") -> Any:
        return self.semcache.run(f"yearly visits to {town}", params={"town": town})

    def tried(self) -> list[tuple[str, str]]:
        run = self.semcache.runs.latest()
        assert run is not None
        return [(n.name, n.status) for n in run if n.kind in {"attempt", "reflection"}]

    def decisions(self) -> list[object]:
        run = self.semcache.runs.latest()
        assert run is not None
        return [n.notes["decision"] for n in run if n.kind == "reflection"]


@pytest.fixture
def office() -> Iterator[Office]:
    with ExitStack() as stack:
        yield Office(stack)


@pytest.fixture
def make_office() -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda **more: Office(stack, **more)


# specs: B-8
def test_what_may_pass_is_tried_again_with_the_same_plan(office: Office) -> None:
    office.store(plan())
    office.errors = [ConnectionResetError("gone")]
    answer = office.run("Bergen")
    assert (answer.value["answer"], answer.tier, answer.planned) == (6, "template", False)
    assert office.calls == ["Bergen", "Bergen"]
    assert office.tried() == [
        ("execute", "failed"), ("reflection on execute", "completed"),
        ("execute (retry 1)", "completed"),
    ]  # fmt: skip
    assert office.decisions() == ["passing"]


def test_a_bad_plan_is_taken_back_and_made_anew_and_the_tree_shows_how(
    make_office: Any, openai_server: Any
) -> None:
    made = json.dumps(plan(town="{{params.town}}"))
    openai_server.answers(lambda asked: made if "start_node" in asked.messages[0] else "no")
    model = OpenAIModel("m", base_url=openai_server.base_url, max_retries=0)
    office = make_office(model=model)
    office.store(plan("count_old"))
    answer = office.run("Bergen")
    assert (answer.value["answer"], answer.planned) == (6, True)
    assert isinstance(answer.found, Hit) is False
    assert any("KeyError: 'column'" in one.messages[-1] for one in openai_server.requests)
    assert [e.why for e in office.observer.of(EntriesRemoved)] == ["feedback"]
    assert office.decisions() == ["plan"]
    shown = str(answer.run)
    assert "✗ execute" in shown
    assert "✓ execute (retry 1)" in shown
    again = office.run("Bergen")
    assert (again.planned, again.value["answer"]) == (False, 6)


def test_values_that_will_not_do_are_the_callers_error_and_the_plan_stays(office: Office) -> None:
    office.store(plan())
    office.errors = [ValueError("no such town")]
    with pytest.raises(OperationFailed, match="no such town"):
        office.run("Atlantis")
    assert office.calls == ["Atlantis"]
    assert office.decisions() == ["values"]
    assert office.run("Bergen").planned is False


def test_a_plan_that_is_made_anew_and_is_the_same_is_not_run_again(office: Office) -> None:
    office.errors = [KeyError("column")] * 9
    with pytest.raises(OperationFailed, match="column"):
        office.semcache.run("Count the visits of town 'Oslo'")
    assert len(office.calls) == 1
    (first, second) = office.observer.of(ReflectionFinished)
    assert (first.retry, second.retry) == (True, False)
    assert second.reason == "The plan was made anew, and is the same"


def test_a_write_is_never_tried_again_without_an_idempotency_key(office: Office) -> None:
    office.store(plan("order"))
    office.errors = [ConnectionResetError("gone")]
    with pytest.raises(OperationFailed, match="gone"):
        office.run("Bergen")
    assert office.calls == ["Bergen"]
    assert office.decisions() == ["wrote"]


@pytest.mark.parametrize("error", [PermissionError("no"), TimeoutError("late")])
def test_no_leave_is_final_and_too_late_is_tried_once_more(
    office: Office, error: Exception
) -> None:
    office.store(plan())
    office.errors = [error] * 9
    with pytest.raises(ExecutionError):
        office.run("Bergen")
    assert len(office.calls) == (1 if isinstance(error, PermissionError) else 2)


def test_attempts_and_delays_are_bounded_by_settings(make_office: Any) -> None:
    settings = Settings(reflection=True, reflection_attempts=4, reflection_delay_s=2)
    office = make_office(settings=settings)
    office.store(plan())
    office.errors = [ConnectionResetError("gone")] * 99
    with pytest.raises(OperationFailed):
        office.run("Bergen")
    assert (len(office.calls), office.clock.sleeps) == (4, [2, 2, 2])


def test_it_is_off_unless_asked_for(make_office: Any) -> None:
    office = make_office(settings=Settings())
    office.store(plan())
    office.errors = [ConnectionResetError("gone")]
    with pytest.raises(OperationFailed):
        office.run("Bergen")
    assert office.tried() == [("execute", "failed")]


def test_a_wrong_semantic_hit_that_fails_is_vetoed_for_that_prompt(office: Office) -> None:
    # By meaning the prompt finds a plan that cannot work for it; that plan stays for its own.
    body: JsonObject = plan("count_old")
    office.store(body)
    found = hit(office.semcache.lookup("please yearly visits to Bergen", params={"town": "Bergen"}))
    assert found.tier == "semantic"
    answer = office.semcache.run("please yearly visits to Bergen", params={"town": "Bergen"})
    assert (answer.value, answer.planned) == ({"answer": 6}, True)
    again = office.semcache.lookup("please yearly visits to Bergen", params={"town": "Bergen"})
    assert (again.entry if isinstance(again, Hit) else "") != found.entry
    assert found.entry in {entry.id for entry in office.semcache.cache.entries()}


def test_a_redacted_run_heals_as_any_other_and_its_history_hides_what_it_must(
    make_office: Any,
) -> None:
    office = make_office(redact=lambda text: text.replace("Atlantis", "<town>"))
    office.store(plan())
    office.errors = [ValueError("no Atlantis")]
    with pytest.raises(OperationFailed, match="no Atlantis"):
        office.run("Atlantis")
    assert office.decisions() == ["values"]
    assert "<town>" in office.semcache.reflection.history[0].error
    assert "Atlantis" not in repr(office.semcache.reflection.history)
    assert "Atlantis" not in str(office.semcache.runs.latest())
