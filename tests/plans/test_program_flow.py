import pytest

from tests.plans.programs import end, step, told


# specs: C-5
def test_a_variable_that_nothing_sets_is_told() -> None:
    findings = told(step(0, "assign", total=1), end(1, "{{totl}} ${total.x} {{params.year}}"))
    assert findings == [
        (
            "reference /instructions/1/parameters/final_answer: reads 'totl', which nothing sets; "
            "did you mean 'total'?"
        )
    ]


def test_a_variable_that_is_only_set_later_is_told() -> None:
    findings = told(step(0, "assign", x={"var": "y"}), step(1, "assign", y=1), end(2))
    assert [f.split(": ")[1] for f in findings] == ["reads 'y', which cannot have been set by then"]


def test_a_variable_that_a_loop_sets_for_its_next_turn_is_fine() -> None:
    findings = told(
        step(0, "assign", x=0),
        step(1, "assign", x="${y} + 1"),
        step(2, "assign", y="${x}"),
        step(3, "jmp", condition_prompt="?", jump_if_true=1, jump_if_false=4),
        end(4),
    )
    assert findings == []


# specs: C-9
@pytest.mark.parametrize("name", ["answer", "final", "a", "final_answers", "Final_Answer"])
def test_a_program_without_a_final_answer_is_told(name: str) -> None:
    (finding,) = told(step(0, "assign", **{name: 1}))
    assert "sets neither 'final_answer' nor 'result'" in finding


def test_a_way_past_the_end_is_told() -> None:
    findings = told(
        step(0, "jmp", condition_prompt="?", jump_if_true=1, jump_if_false=2),
        end(1),
        step(2, "assign", x=1),
    )
    assert findings == [
        (
            "target /instructions/2: is the last instruction and sets no 'final_answer'; expected "
            "the final answer"
        )
    ]


def test_a_loop_without_a_way_out_is_told() -> None:
    (finding, *_) = told(
        step(0, "assign", x=1), step(1, "jmp", target_seq=0), step(2, "reasoning"), end(3)
    )
    assert finding.startswith("endless /instructions/0: leads to no end")
