"""Intent graphs as text and as pictures."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from semcache.planners.steps.intent_drawing import svg, text
from semcache.planners.steps.intent_graph import IntentGraph
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


def test_a_notebook_shows_a_picture_with_a_box_for_each_step_and_the_text() -> None:
    made = graph(step(1, "list issues"), step(2, "count them", ("step1",)))
    shown = made._repr_html_()
    assert shown.count("<rect") == 3
    assert shown.count("<line") == 2
    assert "<details>" in shown
    assert "list issues" in shown


def test_a_picture_of_very_many_steps_shows_some_and_counts_the_rest() -> None:
    drawn = svg(graph(*(step(i, "do") for i in range(1, 201))))
    assert drawn.count("<rect") == 61
    assert "and 140 more steps" in drawn


def test_a_picture_of_a_circle_ends() -> None:
    drawn = svg(graph(step(1, "a", ("step2",)), step(2, "b", ("step1",))))
    assert drawn.count("<rect") == 3


# XML has no control characters; HTML, where it is shown, does.
@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_any_words_make_a_picture_that_can_be_read(words: str) -> None:
    made = graph(step(1, words), goal=f"<script>{words}</script>")
    ET.fromstring(svg(made))  # noqa: S314 - our own output
    assert "<script>" not in made._repr_html_()
    assert text(made)
