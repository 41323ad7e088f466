"""Intent graphs as text and as flowcharts."""

from hypothesis import given
from hypothesis import strategies as st

from semcache.planners.intent_graph import IntentGraph
from semcache.planners.steps.intents import Decomposition, SubIntent


def step(number: int, goal: str, needs: tuple[str, ...] = ()) -> SubIntent:
    return SubIntent(id=f"step{number}", goal=goal, kind="api_call", depends_on=needs)


def graph(*steps: SubIntent, goal: str = "do it all") -> IntentGraph:
    return IntentGraph.of(Decomposition(goal, steps, 0.9, "pattern:x", ("first deferred",)))


def test_the_text_has_every_step_with_its_operation_status_and_needs() -> None:
    made = graph(step(1, "list issues", ("step2",)), step(2, "ask"))
    made = made.resolved("step2", "ask_user", "builtin: a question").advanced(
        "step2", "failed", "x"
    )
    assert str(made).splitlines() == [
        "✗ do it all  [failed]",
        "  by pattern:x, 0.90 sure",
        "  first deferred",
        "  ? step1: list issues  [active]  (needs step2)",
        "  ✗ step2: ask → ask_user  [failed]",
        "      builtin: a question",
        "      x",
        "  ! step1 needs step2, which was said later",
    ]


def test_a_notebook_shows_a_flowchart_with_a_box_for_each_step_or_the_text() -> None:
    made = graph(step(1, "list issues"), step(2, "count them", ("step1",)))
    shown = made._repr_mimebundle_()
    assert shown["text/plain"] == str(made)
    assert shown["text/vnd.mermaid"].splitlines() == [
        "flowchart BT",
        '  n0["? Goal<br/>do it all<br/>goal"]',
        '  n1["? Step 1<br/>list issues<br/>api call"]',
        '  n2["? Step 2<br/>count them<br/>api call"]',
        "  n1 --> n2",
        "  n2 -.-> n0",
    ]


def test_a_flowchart_of_very_many_steps_shows_some_and_counts_the_rest() -> None:
    drawn = graph(*(step(i, "do") for i in range(1, 201))).mermaid()
    assert drawn.count("<br/>do<br/>") == 60
    assert "and 140 more steps" in drawn


def test_a_flowchart_of_a_circle_ends() -> None:
    drawn = graph(step(1, "a", ("step2",)), step(2, "b", ("step1",))).mermaid()
    assert drawn.count("-->") == 2


@given(st.text())
def test_no_words_end_the_label_that_they_stand_in(words: str) -> None:
    made = graph(step(1, words), goal=f'"]; click n0 "{words}')
    lines = made.mermaid().splitlines()
    assert len(lines) == 4
    assert all(line.count('"') == 2 for line in lines[1:3])
    assert str(made)
