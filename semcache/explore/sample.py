"""A sample stream, made rather than recorded, to try things on with no file and no network.

A desk of an office building is asked about rooms and tickets. Each request has several wordings and
a near twin that means something else ("more than", "fewer than"), so that there is something to get
right and something to get wrong. A few requests can be met by no plan.
"""

import random
from collections.abc import Sequence

from semcache.canonical import Json, JsonObject
from semcache.explore.streams import Row
from semcache.prompts.parameter import Parameter

_ROOMS = ("Birch", "Maple", "Willow", "Cedar", "Rowan", "Aspen", "Juniper", "Hazel")
_NAMES = ("Alice Moreau", "Omar Haddad", "Priya Nair", "Tom Becker", "Lena Fischer", "Yuki Mori")
_TEAMS = ("Finance", "Legal", "Marketing", "Support", "Research")

_REQUESTS: dict[str, dict[str, tuple[str, ...]]] = {
    "rooms": {
        "free_rooms": (
            "Which rooms are free on {date}?",
            "Show me the rooms that are free on {date}",
            "What can we still get on {date}?",
        ),
        "taken_rooms": (
            "Which rooms are taken on {date}?",
            "Show me the rooms taken on {date}",
            "Which rooms can nobody have on {date}?",
        ),
        "book": (
            "Book {room} for {number} people",
            "Please book {room} for {number} people",
            "Reserve {room} for {number} people",
            "We need {room} for {number} of us",
        ),
        "cancel": (
            "Cancel the booking of {room}",
            "Please cancel the booking of {room}",
            "We no longer need {room}",
        ),
        "rooms_over": (
            "List rooms with more than {number} seats",
            "Show me the rooms with more than {number} seats",
            "Rooms that seat over {number}",
        ),
        "rooms_under": (
            "List rooms with fewer than {number} seats",
            "Show me the rooms with fewer than {number} seats",
            "Rooms that seat under {number}",
        ),
        "invite": (
            "Invite {name} to {room}",
            "Please invite {name} to {room}",
            "Ask {name} to come to {room}",
        ),
    },
    "tickets": {
        "tickets_before": (
            "How many tickets did {team} open before {date}?",
            "Number of tickets {team} opened before {date}",
        ),
        "tickets_since": (
            "How many tickets did {team} open since {date}?",
            "Number of tickets {team} opened since {date}",
        ),
        "assign": (
            "Assign ticket {code} to {name}",
            "Please assign ticket {code} to {name}",
            "Give {name} ticket {code}",
        ),
        "unassign": (
            "Take ticket {code} away from {name}",
            "Unassign {name} from ticket {code}",
        ),
        "close": ("Close ticket {code}", "Could you close ticket {code}?", "{code} is done"),
        "reopen": (
            "Reopen ticket {code}",
            "Could you reopen ticket {code}?",
            "{code} is not done",
        ),
        "first": (
            "Show me the first {number} tickets of {team}",
            "The oldest {number} tickets of {team}",
        ),
        "last": (
            "Show me the last {number} tickets of {team}",
            "The newest {number} tickets of {team}",
        ),
    },
}
"""Tenant → operation → wordings."""

_UNSERVABLE = ("What is the meaning of all this?", "Tell me a joke", "Sing me a song about rooms")


def sample_rows(count: int = 240, *, noise: float = 0.01, seed: int = 1) -> tuple[Row, ...]:
    """Return `count` rows of two tenants in random order; equal for equal arguments.

    `noise`: share of the plans, in [0, 1], that have an argument more for no reason that the prompt
    tells, as planners do now and then. Who serves another plan there is wrong.
    """
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    return tuple(_row(chance, number, noise) for number in range(count))


def _row(chance: random.Random, number: int, noise: float) -> Row:
    tenant = chance.choice(tuple(_REQUESTS))
    if chance.random() < 0.03:
        return Row(f"{tenant}-{number}", tenant, chance.choice(_UNSERVABLE), (), None)
    operation = chance.choice(tuple(_REQUESTS[tenant]))
    wording = chance.choice(_REQUESTS[tenant][operation])
    values = _values(chance)
    params = [
        Parameter(name, value, mention=str(value))
        for name, value in values.items()
        if f"{{{name}}}" in wording
    ]
    return Row(
        id=f"{tenant}-{number}",
        scope=tenant,
        text=wording.format(**values),
        params=tuple(params),
        plan=_plan(f"{tenant}.{operation}", params, noisy=chance.random() < noise),
    )


def _values(chance: random.Random) -> dict[str, Json]:
    return {
        "room": chance.choice(_ROOMS),
        "name": chance.choice(_NAMES),
        "team": chance.choice(_TEAMS),
        "number": chance.randint(2, 40),
        "date": f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "code": f"TCK-{chance.randint(1000, 9999)}",
    }


def _plan(operation: str, params: Sequence[Parameter], *, noisy: bool) -> JsonObject:
    given: JsonObject = {parameter.name: parameter.value for parameter in params}
    if noisy:
        given["dry_run"] = False
    call: JsonObject = {"operation": operation, "input": given, "route": "end"}
    return {
        "start_node": {"route": "call"},
        "call": call,
        "end": {"completed": True, "vars": {"answer": "$.call"}},
    }
