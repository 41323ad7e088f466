"""Learning which operation does a step."""

from dataclasses import replace

import pytest

from semcache import Catalog, Operation, Parameter
from semcache.errors import OperationFailed, StoreUnavailable
from semcache.planners.learned import NOTE, Learned, LearnedResolver, step_key
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import Referral, Resolution, ResolutionContext
from semcache.planners.steps.resolver import WordResolver
from semcache.stores.memory import MemoryStore
from tests.planners.conftest import Open
from tests.planners.github import GitHub

CATALOG = Catalog(
    [
        Operation("find_issues", "Find.", {"type": "object"}, effect="read"),
        Operation("list_issues", "List.", {"type": "object"}, effect="read"),
    ]
)
STEP = SubIntent(
    id="step1",
    goal="list the issues of acme/site",
    kind="api_call",
    verb="list",
    params=(Parameter("identifier", "acme/site", "acme/site"),),
)
OTHER = replace(
    STEP,
    id="step9",
    goal="List the issues of mandubian/ccos",
    params=(Parameter("identifier", "mandubian/ccos", "mandubian/ccos"),),
)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def learned(store: MemoryStore) -> Learned:
    return Learned(store)


def trusted(learned: Learned, catalog: Catalog = CATALOG, tenant: str = "a") -> str | None:
    found = learned.standing(tenant, OTHER, catalog)
    return None if found is None else found.operation


def test_a_step_is_the_same_with_other_values_and_another_with_other_words() -> None:
    assert step_key(STEP) == step_key(OTHER)
    assert step_key(STEP) != step_key(replace(STEP, goal="list the stale issues of acme/site"))


def test_an_operation_that_ran_well_is_trusted_by_its_tenant(learned: Learned) -> None:
    assert trusted(learned) is None
    learned.ran("a", STEP, "list_issues", CATALOG, well=True)
    assert trusted(learned) == "list_issues"
    assert trusted(learned, tenant="b") is None


def test_an_operation_that_fails_loses_what_it_earned(learned: Learned) -> None:
    for _ in range(9):
        learned.ran("a", STEP, "list_issues", CATALOG, well=True)
    for still in (True, True, False):
        learned.ran("a", STEP, "list_issues", CATALOG, well=False)
        assert (trusted(learned) is not None) == still
    learned.ran("a", STEP, "list_issues", CATALOG, well=True)
    assert trusted(learned) == "list_issues"


def test_another_operation_takes_its_place_by_running_well_and_not_by_failing(
    learned: Learned,
) -> None:
    learned.ran("a", STEP, "list_issues", CATALOG, well=True)
    learned.ran("a", STEP, "find_issues", CATALOG, well=False)
    assert trusted(learned) == "list_issues"
    learned.ran("a", STEP, "find_issues", CATALOG, well=True)
    assert trusted(learned) == "find_issues"


def test_an_operation_that_changed_or_went_has_everything_to_prove_again(learned: Learned) -> None:
    learned.ran("a", STEP, "list_issues", CATALOG, well=True)
    changed = CATALOG.with_(replace(CATALOG.get("list_issues"), summary="List others."))
    assert trusted(learned, changed) is None
    assert trusted(learned, Catalog()) is None


def test_what_cannot_be_read_is_forgotten(learned: Learned, store: MemoryStore) -> None:
    store.put_note("a", NOTE, '{"x": 3}')
    assert trusted(learned) is None
    learned.ran("a", STEP, "list_issues", CATALOG, well=True)
    assert trusted(learned) == "list_issues"


def test_only_so_many_steps_are_remembered(learned: Learned, store: MemoryStore) -> None:
    store.put_note("a", NOTE, None)
    for i in range(501):
        learned.ran("a", replace(STEP, goal=f"do {i}"), "list_issues", CATALOG, well=True)
    assert learned.standing("a", replace(STEP, goal="do 0"), CATALOG) is None
    assert learned.standing("a", replace(STEP, goal="do 500"), CATALOG) is not None


def test_the_resolver_takes_what_was_learned_and_leaves_the_rest(learned: Learned) -> None:
    asked = ResolutionContext(prompt="", catalog=GitHub().catalog, tenant="a")
    assert isinstance(LearnedResolver(learned, WordResolver()).resolve(OTHER, asked), Referral)
    learned.ran("a", STEP, "list_issues", asked.catalog, well=True)
    found = LearnedResolver(learned, WordResolver()).resolve(OTHER, asked)
    assert isinstance(found, Resolution)
    assert (found.operation, found.source) == ("list_issues", "learned")
    assert found.why == "did the same step well before (standing 1)"
    odd = replace(OTHER, kind="data_transform")
    assert isinstance(LearnedResolver(learned, WordResolver()).resolve(odd, asked), Referral)


def test_what_was_learned_never_loses_a_word_of_the_step(learned: Learned) -> None:
    asked = ResolutionContext(prompt="", catalog=GitHub().catalog, tenant="a")
    odd = replace(STEP, goal="list the stale issues of acme/site")
    learned.ran("a", odd, "list_issues", asked.catalog, well=True)
    assert isinstance(LearnedResolver(learned, WordResolver()).resolve(odd, asked), Referral)


def test_a_store_that_is_gone_costs_what_was_learned_and_nothing_else() -> None:
    class Gone(MemoryStore):
        def get_note(self, tenant: str, name: str) -> str | None:
            raise StoreUnavailable("gone")

    resolver = LearnedResolver(Learned(Gone()), WordResolver())
    asked = ResolutionContext(prompt="", catalog=CATALOG)
    assert isinstance(resolver.resolve(STEP, asked), Referral)


# specs: E-13
def test_a_second_goal_with_the_same_step_reuses_what_the_first_one_learned(
    open_semcache: Open,
) -> None:
    semcache = open_semcache(GitHub().catalog)
    semcache.run("list issues in acme/site and count them")
    answer = semcache.run("list issues in globex/docs-site, then sort by title")
    assert answer.planned
    assert answer.intents is not None
    assert answer.intents.steps[0].found_by.startswith("learned: did the same step well before")


def test_a_run_that_fails_teaches_too(open_semcache: Open) -> None:
    github = GitHub()
    semcache = open_semcache(github.catalog)
    semcache.run("list issues in acme/site and count them")
    github.broken.add("list_issues")
    with pytest.raises(OperationFailed):
        semcache.run("list issues in globex/docs-site and count them")
    github.broken.clear()
    answer = semcache.run("list issues in globex/docs-site, then sort by title")
    assert answer.intents is not None
    assert not answer.intents.steps[0].found_by.startswith("learned")
