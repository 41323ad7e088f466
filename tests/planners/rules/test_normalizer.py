from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation, Parameter, catalog_from
from semcache.canonical import JsonObject
from semcache.errors import InvalidPrompt, NormalizationError
from semcache.planners.rules.normalizer import MAX_TOKENS, RuleNormalizer
from semcache.prompts.vocabulary import Vocabulary
from tests.planners.conftest import Ask

CLUSTERS = [
    [
        "Show me electronics sales in California",
        "Find electronics sales in CA",
        "List electronics transactions in California state",
    ],
    ["Find sales over $500", "Get sales where amount is more than $500"],
    ["Show me credit card sales", "Search for credit card transactions"],
    [
        "Calculate total sales by state",
        "What's the total revenue per state?",
        "Sum up sales for each state",
        "Show me sales totals grouped by customer state",
        "Aggregate revenue by state",
    ],
    [
        "Show me total sales in 2024 by category",
        "total sales by category in 2023",
        "What were the total sales in 2022 for each category?",
        "Please show me the total sales, by category, for 2021.",
    ],
    [
        "Top 5 states by revenue",
        "top three states by sales",
        "which 4 states had the highest revenue",
    ],
]


@pytest.mark.parametrize("prompts", CLUSTERS, ids=lambda prompts: prompts[0])
def test_prompts_that_mean_the_same_have_one_key_and_one_identity(
    ask: Ask, prompts: list[str]
) -> None:
    # specs: A-1, A3 and F4 (stability clusters)
    schemas = [ask(prompt) for prompt in prompts]
    assert not any(schema.partial for schema in schemas)
    assert len({schema.identity for schema in schemas}) == 1
    assert len({schema.key for schema in schemas}) == 1


def test_the_documents_example_reads_as_documented(ask: Ask) -> None:
    # specs: A-1
    schema = ask("Show me total sales in 2024 by category")
    assert schema.key == "summarize-sale-amount_year-group_category"
    assert schema.params == {"year": 2024, "amount": {"aggregate": "sum"}}
    assert schema.parameters() == (Parameter("year", 2024, mention="2024"),)


# Each differs from each other in what it asks for.
DIFFERENT = [
    "sales",
    "sales over $500",
    "sales under $500",
    "sales of at least $500",
    "sales up to $500",
    "sales between $100 and $500",
    "sales in Texas",
    "sales in Texas and California",
    "sales excluding Texas",
    "sales not in Texas or California",
    "total sales",
    "average sales",
    "number of sales",
    "total quantity",
    "total sales by state",
    "total sales by category",
    "total sales by state and category",
    "total sales by category and state",
    "average sales by state",
    "total sales in Texas by category",
    "total sales before 2022",
    "total sales after 2022",
    "total sales since 2022",
    "total sales in 2022",
    "total sales between 2021 and 2022",
    "total sales not in 2022",
    "top 5 states by sales",
    "bottom 5 states by sales",
    "top 5 states by number of sales",
    "top 5 states by units",
    "top 5 categories by sales",
    "top 5 sales",
    "5 latest sales",
    "5 oldest sales",
    "5 sales",
    "sales by state sorted by amount",
    "sales by state sorted by amount descending",
    "sales with gift card",
    "sales without gift card",
    "what was the largest sale",
    "what was the smallest sale",
]


def test_no_two_requests_that_differ_in_meaning_share_an_identity(ask: Ask) -> None:
    # specs: A-3, A-4
    schemas = {prompt: ask(prompt) for prompt in DIFFERENT}
    assert [prompt for prompt, schema in schemas.items() if schema.partial] == []
    for one, other in combinations(DIFFERENT, 2):
        assert schemas[one].identity != schemas[other].identity, (one, other)


MEANINGFUL = [
    "not", "no", "without", "never", "except", "only", "distinct", "unique", "about", "almost",
    "my", "their", "yesterday", "twice", "refunded", "pending", "monthly", "cumulative", "vs",
    "or", "unless", "next", "half", "double", "every other", "if", "overall", "growth", "why",
]  # fmt: skip


@settings(max_examples=100)
@given(word=st.sampled_from(MEANINGFUL), place=st.integers(0, 9))
def test_a_word_with_a_meaning_never_leaves_the_schema_as_it_was(
    sales: Catalog, rules: RuleNormalizer, word: str, place: int
) -> None:
    base = "show me total sales in Texas in 2024 by category"
    words = base.split()
    changed = " ".join([*words[:place], word, *words[place:]])
    schema = rules.normalize(changed, catalog=sales)
    assert schema.partial or schema.identity != rules.normalize(base, catalog=sales).identity


@settings(max_examples=100)
@given(noise=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200))
def test_any_text_gives_a_schema_in_the_vocabulary_or_a_typed_error(
    sales: Catalog, rules: RuleNormalizer, noise: str
) -> None:
    try:
        schema = rules.normalize(f"sales {noise}", catalog=sales)
    except NormalizationError:
        return
    assert Vocabulary.from_catalog(sales).validate(schema) == ()


@settings(max_examples=100)
@given(
    words=st.lists(
        st.sampled_from(
            "sales total average by per top 5 states state category in over $500 and or not Texas "
            "Ohio 2024 between latest which the highest revenue sorted units of with".split()
        ),
        max_size=12,
    )
)
def test_any_row_of_known_words_gives_a_schema_in_the_vocabulary(
    sales: Catalog, rules: RuleNormalizer, words: list[str]
) -> None:
    schema = rules.normalize(" ".join(["sales", *words]), catalog=sales)
    assert Vocabulary.from_catalog(sales).validate(schema) == ()
    assert all(one.mention is None or one.mention in " ".join(words) for one in schema.parameters())


@pytest.mark.parametrize(
    "prompt",
    [
        "Show sales in Texas and customers in Ohio",
        "show sales in Texas and count sales in Ohio",
        "Show sales in Texas. Also in Ohio.",
        "show sales then delete them",
        "what is the status of sale 17",
        "delete sales in Texas",
        "where were sales over $500",
        "sales by Sia",
        "how much did we sell in 2024",
    ],
)
def test_a_request_of_two_parts_or_of_unknown_words_is_partial(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


def test_unexplained_words_are_named_as_they_stand_in_the_prompt(ask: Ask) -> None:
    assert ask("my refunded sales in Texas").unexplained == ("my", "refunded")


def test_a_prompt_without_a_known_word_is_an_error(ask: Ask) -> None:
    with pytest.raises(NormalizationError, match="no word of the prompt 'sing me a song'"):
        ask("sing me a song")


def test_a_document_is_no_request(ask: Ask) -> None:
    with pytest.raises(NormalizationError, match=f"at most {MAX_TOKENS}"):
        ask("sales in Texas " * 200)


def test_a_blank_prompt_is_refused(ask: Ask) -> None:
    with pytest.raises(InvalidPrompt):
        ask("   ")


def test_a_value_that_the_caller_holds_is_taken_as_it_is(
    rules: RuleNormalizer, sales: Catalog
) -> None:
    held = [Parameter("customer", "C-17", mention="Ada")]
    schema = rules.normalize("sales for Ada in 2024", catalog=sales, params=held)
    assert not schema.partial
    assert schema.params == {"customer": "C-17", "year": 2024}
    assert schema.mentions["customer"] == "Ada"


def test_a_value_that_the_caller_holds_and_the_prompt_does_not_spell_is_added(
    rules: RuleNormalizer, sales: Catalog
) -> None:
    schema = rules.normalize("sales in 2024", catalog=sales, params=[Parameter("state", "TX")])
    assert schema.params == {"year": 2024, "state": "TX"}
    assert [one.mention for one in schema.parameters()] == ["2024", None]


def test_a_value_that_no_operation_takes_leaves_the_schema_partial(
    rules: RuleNormalizer, sales: Catalog
) -> None:
    schema = rules.normalize("sales", catalog=sales, params=[Parameter("mood", "good")])
    assert schema.unexplained == ("mood",)


def test_another_catalog_is_read_by_its_own_words(track: Ask) -> None:
    schema = track("show me 5 open tickets with label bug in acme/web-app")
    assert not schema.partial
    assert schema.key == "search-issue-labels_limit_repository_state"
    assert schema.params == {
        "labels": "bug",
        "repository": "acme/web-app",
        "state": "open",
        "limit": 5,
    }


def test_roles_are_told_apart_by_their_prepositions(fly: Ask) -> None:
    there, back = fly("flights from Boston to Denver"), fly("flights to Boston from Denver")
    assert there.params == {"origin": "Boston", "destination": "Denver"}
    assert back.params == {"origin": "Denver", "destination": "Boston"}
    assert fly("flights Boston Denver").partial


def test_an_operation_that_changes_things_needs_its_own_verb(track: Ask, fly: Ask) -> None:
    assert track('create issue "Crash on start" in acme/web-app').key == (
        "create-issue-repository_title"
    )
    assert fly("delete flight AB123").params == {"flight_id": "AB123"}
    assert fly("cancel flight AB123").partial
    assert fly("show flight AB123").partial


def test_one_end_of_a_range_is_taken_only_with_its_own_strictness(fly: Ask) -> None:
    base = "flights from Boston to Denver"
    assert fly(f"{base} up to $300").params["price"] == {"operator": "<=", "operand": 300}
    assert fly(f"{base} between $100 and $300").params["price"] == {
        "operator": "between",
        "operand": [100, 300],
    }
    assert fly(f"{base} under $300").partial  # the operation includes its end


def test_what_an_operation_makes_of_a_list_is_not_guessed(track: Ask) -> None:
    assert not track("issues in acme/web-app with labels bug and docs").partial
    assert track("issues in acme/web-app with labels bug or docs").partial


def list_cats(*, color: str | None = None) -> list[str]:
    """List cats."""
    return [str(color)]


def list_dogs(*, color: str | None = None) -> list[str]:
    """List dogs."""
    return [str(color)]


def test_a_noun_of_two_operations_that_read_differently_is_ambiguous() -> None:
    pets = catalog_from(list_cats, list_dogs, synonyms={"pet": "cat", "pets": "dog"})
    assert RuleNormalizer().normalize("list pets", catalog=pets).unexplained == ("pets",)
    assert RuleNormalizer().normalize("list cats", catalog=pets).entities == ("cat",)


def depot(**fields: JsonObject) -> Catalog:
    schema: JsonObject = {"type": "object", "properties": {**fields}}
    return Catalog([Operation("list_orders", "List orders.", schema, effect="read")])


def test_words_that_a_schema_has_for_a_value_are_read_as_that_value(
    rules: RuleNormalizer,
) -> None:
    places: JsonObject = {
        "oneOf": [{"const": "CA", "title": "California"}, {"const": "NY", "title": "New York"}]
    }
    urgency: JsonObject = {"enum": [1, 2], "x-enum-varnames": ["LATER", "AtOnce"]}
    known = depot(state=places, urgency=urgency)
    for prompt, params in [
        ("list orders in New York", {"state": "NY"}),
        ("show me the orders in NY", {"state": "NY"}),
        ("orders in California with urgency at once", {"state": "CA", "urgency": 2}),
    ]:
        schema = rules.normalize(prompt, catalog=known)
        assert (schema.params, schema.unexplained) == (params, ())


def test_a_label_never_takes_a_word_of_english_or_one_that_is_declared_otherwise(
    rules: RuleNormalizer,
) -> None:
    state: JsonObject = {"enum": ["*", "NY", "CA"], "enumNames": ["all", "Big Apple", "Coast"]}
    catalog = Catalog(depot(state=state), synonyms={"coast": "NY"})
    assert rules.normalize("list all orders", catalog=catalog).params == {}
    assert rules.normalize("list orders in Big Apple", catalog=catalog).params == {"state": "NY"}
    assert rules.normalize("list orders in coast", catalog=catalog).params == {"state": "NY"}
