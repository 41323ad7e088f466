"""Split identifiers: two values that are said as one, such as the two halves of `owner/name`.

A plan that had each half as a parameter of its own would serve no other prompt: what a prompt has
there is one name with a slash, and nothing tells its halves apart. So the plan takes the whole, and
parts it when it runs.
"""

from collections.abc import Iterator
from dataclasses import replace

from semcache.binding.generalize.placeholders import placeholder
from semcache.canonical import Json, JsonObject, with_texts
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import OperationRefused
from semcache.planners.steps.assembly import Assembled
from semcache.plans.routes import START, RoutePlan
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter, name_key

PART = "data.part"
SLASH = "/"


def _part(given: JsonObject) -> Json:
    halves = str(given["text"]).split(SLASH)
    if len(halves) != 2 or not all(halves):
        raise OperationRefused(f"{given['text']!r} has no two halves; expected one such as 'a/b'")
    return list(halves)


PARTING = Operation(
    PART,
    "Part a name at its one slash into the two halves.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"type": "string"}},
    effect="read",
    call=_part,
)
"""The built-in operation that parts a name."""


def joined(made: Assembled, prompt: str, catalog: Catalog) -> Assembled:
    """Return the plan with values that are two halves of one name of the prompt as one parameter.

    Unchanged if there are none, or plans over `catalog` cannot part a name.
    """
    for mention in find_mentions(prompt) if PART in catalog else ():
        halves = _halves(mention, made.params)
        if halves is not None:
            made = _joined(made, mention, halves)
    return made


def _halves(mention: Mention, params: tuple[Parameter, ...]) -> tuple[Parameter, Parameter] | None:
    texts = mention.text.split(SLASH)
    if mention.kind != "identifier" or len(texts) != 2:
        return None
    found = [[p for p in params if p.mention == text and p.value == text] for text in texts]
    first, second = found
    if len(first) != 1 or len(second) != 1 or first[0].name == second[0].name:
        return None
    return first[0], second[0]


def _joined(made: Assembled, mention: Mention, halves: tuple[Parameter, Parameter]) -> Assembled:
    names = tuple(half.name for half in halves)
    taken = {name_key(one.name) for one in made.params}
    name = next(n for n in _names("_".join(names)) if name_key(n) not in taken)
    node = next(n for n in _names("part") if n not in made.plan.body)
    values: dict[str, Json] = {
        placeholder(half): f"$.{node}[{at}]" for at, half in enumerate(names)
    }
    body: JsonObject = {
        key: with_texts(value, lambda text: values.get(text, text))
        for key, value in made.plan.body.items()
    }
    start = body[START]
    first = start.get("route") if isinstance(start, dict) else None
    body[START] = {"route": node}
    body[node] = {
        "operation": PART,
        "input": {"text": placeholder(name)},
        "route": first,
    }
    left = tuple(one for one in made.params if one not in halves)
    whole = Parameter(name, mention.text, mention.text)
    return replace(made, plan=RoutePlan.from_dict(body), params=(*left, whole))


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{number}" for number in range(2, 10_000))
