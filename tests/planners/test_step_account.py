"""What is planned without a model accounts for every word and value of a prompt, or is refused."""

from dataclasses import replace
from typing import Any

import pytest

from semcache import Catalog, Operation, SemCache, catalog_from, operation
from semcache.canonical import Json
from semcache.errors import PlanningError, Referred
from tests.planners.conftest import Open

PARCELS: list[dict[str, Json]] = [
    {"parcel_id": 1, "city": "Lyon", "weight": 4, "status": "sent", "posted": "2024-01-03"},
    {"parcel_id": 2, "city": "Nice", "weight": 9, "status": "lost", "posted": "2024-02-01"},
    {"parcel_id": 3, "city": "Lyon", "weight": 2, "status": "sent", "posted": "2024-01-20"},
]


class Depot:
    """Operations of a depot that note how they are called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Json]]] = []
        calls = self.calls

        def list_parcels(depot: str | None = None) -> list[dict[str, Json]]:
            """List the parcels."""
            calls.append(("list_parcels", {"depot": depot}))
            return PARCELS

        def get_parcel(parcel_id: str) -> dict[str, Json]:
            """Get a parcel."""
            calls.append(("get_parcel", {"parcel_id": parcel_id}))
            return PARCELS[0]

        def find_sender(email: str) -> dict[str, Json]:
            """Find a sender."""
            calls.append(("find_sender", {"email": email}))
            return {"name": "Mira"}

        def list_claims(sender_id: str | None = None) -> list[str]:
            """List the claims."""
            calls.append(("list_claims", {"sender_id": sender_id}))
            return []

        def list_notes(parcel_id: str) -> list[str]:
            """List the notes of a parcel."""
            calls.append(("list_notes", {"parcel_id": parcel_id}))
            return []

        def send_letter(to: str, subject: str) -> str:
            """Send a letter."""
            calls.append(("send_letter", {"to": to, "subject": subject}))
            return "sent"

        def return_parcel(parcel_id: str) -> str:
            """Return a parcel."""
            calls.append(("return_parcel", {"parcel_id": parcel_id}))
            return "returned"

        reads = (list_parcels, get_parcel, find_sender, list_claims, list_notes)
        self.catalog = catalog_from(
            *(operation(one, effect="read") for one in reads), send_letter, return_parcel
        )


@pytest.fixture
def depot() -> Depot:
    return Depot()


@pytest.fixture
def semcache(depot: Depot, open_semcache: Open) -> SemCache:
    return open_semcache(depot.catalog)


@pytest.mark.parametrize("verb", ["Insure", "Reroute", "Weigh", "Lose", "Do not get", "Unpack"])
def test_a_verb_that_no_operation_has_is_refused_also_with_its_values(
    semcache: SemCache, depot: Depot, verb: str
) -> None:
    with pytest.raises(PlanningError):
        semcache.run(f"{verb} the parcel", params={"parcel_id": "P-9"})
    assert depot.calls == []
    assert semcache.cache.stats().entries == 0


def test_the_operation_of_the_verb_is_planned_with_the_values_of_the_caller(
    semcache: SemCache, depot: Depot
) -> None:
    semcache.run("Please return the parcel", params={"parcel_id": "P-9"})
    semcache.run("Get the parcel", params={"parcel_id": "P-9"})
    assert depot.calls == [
        ("return_parcel", {"parcel_id": "P-9"}),
        ("get_parcel", {"parcel_id": "P-9"}),
    ]


def test_a_given_value_that_nothing_takes_is_never_dropped(
    semcache: SemCache, depot: Depot
) -> None:
    with pytest.raises(PlanningError, match="as_of"):
        semcache.run("Get the parcel", params={"parcel_id": "P-9", "as_of": "2024-05-01"})
    assert depot.calls == []


@pytest.mark.parametrize(
    "prompt",
    [
        "List the parcels and keep the bottom 2",
        "List the parcels and keep the last 2",
        "List the parcels and take 2 by chance",
        "List the parcels and limit to weight 2",
        "List the parcels and take the top 2 by weight",
        "List the parcels and take the 2 heaviest",
        "List the parcels and take 2 per city",
        "List the parcels and sort by biggest",
        "List the parcels, then order by most",
        "List the parcels and average the smallest weight",
        "List the parcels and keep 40%",
        "List the parcels and keep a third",
        "List the parcels and count the lost ones",
        "List the parcels and keep those whose status is not lost",
    ],
)
def test_a_built_in_step_with_a_word_too_many_is_refused(semcache: SemCache, prompt: str) -> None:
    with pytest.raises(PlanningError):
        semcache.run(prompt)
    assert semcache.cache.stats().entries == 0


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("List the parcels and take the first 2", [1, 2]),
        ("List the parcels, then sort by weight descending, and take the top 2", [2, 1]),
        ("List the parcels and sort by weight lowest first", [3, 1, 2]),
        ("List the parcels and keep those with more than 3 weight", [1, 2]),
        ("List the parcels and keep those with status lost", [2]),
        ("List the parcels and filter by city Lyon", [1, 3]),
    ],
)
def test_a_built_in_step_that_accounts_for_its_words_does_what_they_say(
    semcache: SemCache, prompt: str, wanted: list[int]
) -> None:
    value: Any = semcache.run(prompt).value
    assert [row["parcel_id"] for row in value["answer"]] == wanted


@pytest.mark.parametrize(
    "prompt",
    [
        "Find the sender with email mira@example.org, then list her claims",
        "Find the sender with email mira@example.org, then list claims",
    ],
)
def test_what_a_step_was_to_give_is_asked_for_where_it_does_not(
    semcache: SemCache, depot: Depot, prompt: str
) -> None:
    with pytest.raises(Referred, match="sender_id"):
        semcache.run(prompt)
    assert depot.calls == []


@pytest.mark.parametrize(
    "prompt",
    [
        'Send a letter from mira@example.org with subject "Hello"',
        'Send a letter about mira@example.org with subject "Hello"',
        'Send a letter. to mira@example.org with subject "Hello"',
        "List the notes of parcel 17. of parcel",
        "List heavy parcels",
        "List new parcels",
        "List the parcels without notes",
        "List the parcels \u2705",
        "List the parcels + 5",
        "Should I return parcel P-9?",
    ],
)
def test_a_role_a_qualifier_or_a_sign_that_nothing_takes_is_refused(
    semcache: SemCache, depot: Depot, prompt: str
) -> None:
    with pytest.raises(PlanningError):
        semcache.run(prompt)
    assert depot.calls == []


def test_a_noun_and_its_value_fill_the_property_that_identifies_the_noun(
    semcache: SemCache, depot: Depot
) -> None:
    semcache.run('Send a letter to mira@example.org with subject "Hello"')
    semcache.run("List the notes of parcel P-17")
    semcache.run("List the notes of parcel 17")
    assert depot.calls == [
        ("send_letter", {"to": "mira@example.org", "subject": "Hello"}),
        ("list_notes", {"parcel_id": "P-17"}),
        ("list_notes", {"parcel_id": "17"}),
    ]


def house() -> list[Operation]:
    """Return operations that all begin with the mark of their maker."""

    def given(**properties: str) -> dict[str, Json]:
        described: dict[str, Json] = {name: {"type": one} for name, one in properties.items()}
        return {"type": "object", "properties": described, "required": list(properties)}

    return [
        Operation("AcmeTurnOn", "", given(name="string"), {}, "write"),
        Operation("AcmeTurnOff", "", given(name="string"), {}, "write"),
        Operation("AcmeVacuumStart", "", given(), {}, "write"),
        Operation("AcmeSetVolume", "", given(volume_level="integer"), {}, "write"),
        Operation("AcmeSearchRooms", "", given(number_of_beds="integer"), {}, "read"),
        Operation("AcmeSearchFiles", "", given(folder="string", glob="string"), {}, "read"),
        Operation("AcmeGetFile", "", given(folder="string"), {}, "read"),
    ]


@pytest.mark.parametrize(
    ("prompt", "params", "call"),
    [
        ("Turn off", {"name": "lamp"}, ("AcmeTurnOff", {"name": "lamp"})),
        ("Start the vacuum", None, ("AcmeVacuumStart", {})),
        ("Set the volume to 30", None, ("AcmeSetVolume", {"volume_level": 30})),
        ("Search rooms with 2 beds", None, ("AcmeSearchRooms", {"number_of_beds": 2})),
    ],
)
def test_a_mark_before_every_name_is_no_part_of_what_it_says(
    open_semcache: Open,
    prompt: str,
    params: dict[str, Json] | None,
    call: tuple[str, dict[str, Json]],
) -> None:
    calls: list[tuple[str, dict[str, Json]]] = []

    def noting(one: Operation) -> Operation:
        return replace(one, call=lambda given: calls.append((one.name, given)))

    open_semcache(Catalog(map(noting, house()))).run(prompt, params=params)
    assert calls == [call]


@pytest.mark.parametrize(
    ("prompt", "params"),
    [("Turn", {"name": "lamp"}), ("Turn out", {"name": "lamp"}), ("Start", None), ("Unlock", None)],
)
def test_a_verb_of_two_words_is_said_with_both(
    open_semcache: Open, prompt: str, params: dict[str, Json] | None
) -> None:
    semcache = open_semcache(Catalog(house()))
    with pytest.raises(PlanningError):
        semcache.create(prompt, params=params)


def test_an_operation_that_is_nearer_and_lacks_a_value_is_asked_for_it(
    open_semcache: Open,
) -> None:
    """Another that also reads does not stand in for it."""
    semcache = open_semcache(Catalog(house()))
    with pytest.raises(Referred, match="'glob'"):
        semcache.create('Search files in folder "/srv"')
    assert semcache.create('Get the file in folder "/srv"').plan.operations() == ("AcmeGetFile",)
