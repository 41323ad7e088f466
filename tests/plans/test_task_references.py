"""References of the tasks format."""

import pytest

from semcache.canonical import Json
from semcache.plans.tasks import TaskPath, is_reference, parse, walk

ORDER: Json = {
    "id": 7,
    "items": [{"sku": "A"}, {"sku": "B", "tags": []}],
    "first name": "Ada",
    "a.b": "dotted",
    "a": {"b": "nested"},
    "c": {"d": None},
    "0": "zero",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$task1.id", 7),
        ("$task1.items[1].sku", "B"),
        ("$task1.items.0.sku", "A"),
        ("$task1['first name']", "Ada"),
        ('$task1["first name"]', "Ada"),
        ("$task1.a.b", "dotted"),
        ("$task1.c.d", None),
        ("$task1.0", "zero"),
        ("$task1", ORDER),
    ],
)
def test_a_reference_leads_into_a_result(text: str, found: Json) -> None:
    path = parse(text)
    assert path is not None
    assert path.task == "task1"
    assert walk(ORDER, path.steps) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("$task1.name", "no 'name' in an object with 'id', 'items'"),
        ("$task1.items[2]", r"no '2' in a list of 2"),
        ("$task1.items.sku", "no 'sku' in a list of 2"),
        ("$task1.items[99999999999999999999]", "in a list of 2"),
        ("$task1.items[0].sku.x", "no 'x' in a str"),
        ("$task1.c.d.e", "no 'e' in null"),
        ("$task1.items[1].tags[0]", "in a list of 0"),
    ],
)
def test_what_is_not_there_is_an_error_that_tells_what_is(text: str, told: str) -> None:
    path = parse(text)
    assert path is not None
    with pytest.raises(LookupError, match=told):
        walk(ORDER, path.steps)


def test_the_task_of_the_constants_is_known_in_any_case() -> None:
    assert parse("$Task0.x") == TaskPath("task0", ("x",))
    assert parse("$Task1.x") == TaskPath("Task1", ("x",))


@pytest.mark.parametrize(
    "text", ["", "$", "$.a", "$task1.", "$task1..a", "$task1.a b", "Order $task1.a", "$task1.a, b",
             "$task1.a$task2.b", "$task1[]", "$task1['']", "${task1}", "$1.a", " $task1.a"]
)  # fmt: skip
def test_what_is_not_a_reference_from_end_to_end_is_none(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("text", ["$500", "$5.00 off", "$$task1.a", "${{params.price}}", "5$", ""])
def test_money_and_literals_are_no_references(text: str) -> None:
    assert not is_reference(text)
