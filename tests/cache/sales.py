"""A plan about sales and schemas that prompts about sales have."""

from functools import partial

from semcache import Parameter, PromptSchema
from semcache.canonical import Json
from tests.calling import calling

YEAR = Parameter("year", "2024", mention="2024")

plan = partial(calling, "sales")


def schema(
    action: str = "summarize", group_by: tuple[str, ...] = ("category",), **params: Json
) -> PromptSchema:
    """Return a schema about sales."""
    return PromptSchema(action, ("sale",), group_by, params)
