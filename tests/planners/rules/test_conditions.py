import pytest

from semcache.canonical import Json
from tests.planners.conftest import Ask


@pytest.mark.parametrize(
    ("prompt", "operator", "operand"),
    [
        ("sales over $500", ">", 500),
        ("sales above 500", ">", 500),
        ("sales of more than $1,250.50", ">", 1250.5),
        ("sales > 500", ">", 500),
        ("sales exceeding $500", ">", 500),
        ("sales not over $500", "<=", 500),
        ("sales under $500", "<", 500),
        ("sales below five hundred dollars", "<", 500),
        ("sales at least $500", ">=", 500),
        ("sales no less than $500", ">=", 500),
        ("sales where the amount is $500 or more", ">=", 500),
        ("sales at most $500", "<=", 500),
        ("sales up to $500", "<=", 500),
        ("sales with an amount of $500 or less", "<=", 500),
        ("sales with amount not equal to 500", "!=", 500),
        ("sales between $100 and $500", "between", [100, 500]),
        ("sales with amount from 100 to 500", "between", [100, 500]),
        ("sales at least $100 and at most $500", "between", [100, 500]),
    ],
)
def test_a_bound_on_the_size_is_read(ask: Ask, prompt: str, operator: str, operand: Json) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.params == {"amount": {"operator": operator, "operand": operand}}


@pytest.mark.parametrize(
    ("prompt", "year"),
    [
        ("sales in 2022", 2022),
        ("sales during 2022", 2022),
        ("sales before 2022", {"operator": "<", "operand": 2022}),
        ("sales after 2022", {"operator": ">", "operand": 2022}),
        ("sales since 2022", {"operator": ">=", "operand": 2022}),
        ("sales from 2022 onwards", {"operator": ">=", "operand": 2022}),
        ("sales in 2022 or later", {"operator": ">=", "operand": 2022}),
        ("sales in 2022 or earlier", {"operator": "<=", "operand": 2022}),
        ("sales not in 2022", {"operator": "!=", "operand": 2022}),
        ("sales from 2021 to 2023", {"operator": "between", "operand": [2021, 2023]}),
        ("sales in 2021-2023", {"operator": "between", "operand": [2021, 2023]}),
        ("sales in 2021 and 2023", {"operator": "in", "operand": [2021, 2023]}),
    ],
)
def test_a_bound_on_the_year_is_read(ask: Ask, prompt: str, year: Json) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.params == {"year": year}


def test_a_day_is_a_date_and_a_month_is_one_of_its_year(ask: Ask) -> None:
    assert ask("sales before March 11, 2024").params == {
        "date": {"operator": "<", "operand": "2024-03-11"}
    }
    assert ask("sales in March 2024").params == {"month": 3, "year": 2024}
    assert ask("sales in Q1 2024").params == {"quarter": 1, "year": 2024}


@pytest.mark.parametrize(
    "prompt",
    [
        "sales in March",  # of which year?
        "sales in Q1",
        "total sales by month",
        "sales before March 2024",
        "sales not in March 2024",
        "sales in Q4 2023 and 2024",
        "sales on 11/03/2024",  # day or month first?
        "sales last year",
        "sales yesterday",
        "sales in the last 30 days",
        "sales from 2022",  # in it, or since?
        "sales by 2022",
        "sales until 2022",
        "sales from 2023 to 2021",
        "2024 sales",  # the year, or so many?
        "sales over €500",  # amounts are in what the catalog counts in
        "sales around $500",
        "sales of $500",
    ],
)
def test_a_value_whose_meaning_is_not_certain_is_not_taken(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


@pytest.mark.parametrize(
    ("prompt", "state"),
    [
        ("sales in Texas", "TX"),
        ("sales from TX", "TX"),
        ("Texas sales", "TX"),
        ("sales in Texas state", "TX"),
        ("sales in the state of Texas", "TX"),
        ("sales where state is Texas", "TX"),
        ("sales with state: TX", "TX"),
        ("sales in Texas and California", {"operator": "in", "operand": ["TX", "CA"]}),
        ("sales in Texas, Ohio or CA", {"operator": "in", "operand": ["TX", "OH", "CA"]}),
        ("sales in Texas and in California", {"operator": "in", "operand": ["TX", "CA"]}),
        ("sales excluding Texas", {"operator": "!=", "operand": "TX"}),
        ("sales outside Texas", {"operator": "!=", "operand": "TX"}),
        ("sales that are not in Texas", {"operator": "!=", "operand": "TX"}),
        ("sales not in Texas or Ohio", {"operator": "not_in", "operand": ["TX", "OH"]}),
    ],
)
def test_a_value_of_a_closed_set_is_read_in_its_canonical_form(
    ask: Ask, prompt: str, state: Json
) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.params == {"state": state}


def test_the_words_that_carry_a_value_are_kept(ask: Ask) -> None:
    schema = ask("total sales excluding Texas between 2021 and 2023")
    assert schema.mentions == {
        "state.operand": "Texas",
        "year.operand.0": "2021",
        "year.operand.1": "2023",
    }


@pytest.mark.parametrize(
    "prompt",
    [
        "sales in Texas or electronics",  # either of two fields
        "sales from Texas to California",
        "sales to Texas",
        "sales excluding electronics in Texas",  # does Texas belong to the exclusion?
        "sales excluding electronics over $500",
        "sales without discount",
        "all but Texas sales",
        "sales only in Texas",
        "neither Texas nor Ohio sales",
        "sales in Texas in Ohio",
        "sales over $100 and under $500",
        "sales over 3 states",
        "sales over electronics",
        "total sales in sales 2020",
        "are there sales over $500",  # yes or no?
        "is total sales in 2024 over $500",
        "total sales in Texas were over $500",
        "sales with amount in Texas",
    ],
)
def test_a_condition_that_could_be_read_in_two_ways_is_not_taken(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


def test_conditions_on_different_fields_all_hold(ask: Ask) -> None:
    schema = ask("electronics sales in Texas over $500 since 2022 with gift card")
    assert not schema.partial
    assert schema.params == {
        "category": "Electronics",
        "state": "TX",
        "amount": {"operator": ">", "operand": 500},
        "year": {"operator": ">=", "operand": 2022},
        "payment_method": "gift card",
    }


def test_an_exclusion_and_a_time_go_together(ask: Ask) -> None:
    schema = ask("total sales without returns in 2024")
    assert schema.params["status"] == {"operator": "!=", "operand": "returned"}
    assert not schema.partial


def test_an_id_belongs_to_the_noun_before_it(track: Ask) -> None:
    assert track("get issue #42 in acme/web-app").params == {
        "number": 42,
        "repository": "acme/web-app",
    }
    assert track("get issue in acme/web-app 42").partial


def test_a_number_belongs_to_the_unit_after_it(ask: Ask) -> None:
    assert ask("sales with more than 5 units").params == {
        "quantity": {"operator": ">", "operand": 5}
    }


def test_quoted_text_is_the_value_of_the_field_before_it(ask: Ask) -> None:
    assert ask('sales for customer "Ada Chen"').params == {"customer": "Ada Chen"}
    assert ask('sales for "Ada Chen"').partial
