"""Prompts of the demo in the order they are asked, each with SQL that knows its answer.

`cases.toml` beside this file has them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

Shape = Literal["number", "groups", "ranking", "records", "record"]
"""What an answer looks like: one figure; a row for each group, in any order; groups in the order
asked for; rows of which only the columns of the SQL are compared, in any order; one such row."""


@dataclass(frozen=True, slots=True)
class SalesQuery:
    """A question to the base tables."""

    shape: Shape
    sql: str
    """Placeholders are `?`; columns are named as in the answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, and how to know its answer without semcache."""

    prompt: str
    query: SalesQuery
    values: tuple[str | float, ...] = ()
    """The values of the prompt and of the answers, in the order of the placeholders."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What a person says to the questions that the plan asks, by topic."""


def _cases(told: Mapping[str, Any], part: str) -> tuple[Case, ...]:
    queries = {name: SalesQuery(**query) for name, query in told["queries"].items()}
    return tuple(
        Case(
            case["prompt"],
            queries[case["query"]],
            tuple(case["values"]),
            case.get("answers", {}),
        )
        for case in told[part]
    )


_TOLD = tomllib.loads(files(__package__).joinpath("cases.toml").read_text(encoding="utf-8"))

ONE_STEP = _cases(_TOLD, "one_step")
"""Prompts that one call answers."""
SEVERAL_STEPS = _cases(_TOLD, "several_steps")
"""Prompts of several steps: a call that needs another's result, what is done to a result, and
questions to a person."""
CASES: tuple[Case, ...] = (*ONE_STEP, *SEVERAL_STEPS)
"""Asked one after the other of one cache, so that later ones meet the plans of earlier ones."""
