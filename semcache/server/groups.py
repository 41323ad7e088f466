"""Plan groups as a person looks at them: plans that differ only in values, and who said them."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from semcache.binding.template import PlanTemplate
from semcache.cache.entries.entry import Entry
from semcache.canonical import Json, JsonObject, Pointer, digest
from semcache.plans.document import LISTED

EXAMPLES = 20
"""Entries of a group that are shown, newest first."""


def plan_groups(entries: Sequence[Entry], count: int) -> list[JsonObject]:
    """Return the `count` largest plan groups as JSON; of equal ones the newest first."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_same(entry), []).append(entry)
    largest = sorted(groups.items(), key=lambda g: (-len(g[1]), -g[1][-1].created_s))
    return [_group(name, members) for name, members in largest[:count]]


def outline(plan: PlanTemplate, *, names: bool = True) -> Json:
    """Return the plan with `<name>`, or `<>`, where the value of a parameter goes."""
    drawn: JsonObject = deepcopy(plan.plan)
    said: dict[Pointer, str] = {}
    for binding in plan.bindings:
        slot = f"<{binding.param}>" if names else "<>"
        # Bindings of one text stand in its order, each with what is beside it.
        before = said.get(binding.at, "")
        said[binding.at] = f"{before}{binding.before}{slot}{binding.after}"
    for at, text in said.items():
        above: Any = drawn
        for step in at[:-1]:
            above = above[step]
        above[at[-1]] = text
    return drawn[LISTED] if drawn.keys() == {LISTED} else drawn


def _same(entry: Entry) -> str:
    """Return a name that entries share whose plans differ only in values."""
    return digest([outline(entry.plan, names=False), entry.catalog, entry.grounding])[:16]


def _group(name: str, members: Sequence[Entry]) -> JsonObject:
    newest = members[::-1][:EXAMPLES]
    return {
        "group": name,
        "entries": len(members),
        "operations": list[Json](sorted({op for entry in members for op in entry.operations})),
        "plan": outline(members[-1].plan),
        "examples": [_example(entry) for entry in newest],
    }


def _example(entry: Entry) -> JsonObject:
    return {
        "entry": entry.id,
        "prompt": entry.prompt,
        "template": entry.template.text,
        "key": entry.key,
        "tags": list(entry.tags),
        "created": entry.created_s,
        "expires": entry.expires_s,
        "pinned": dict(entry.plan.held),
    }
