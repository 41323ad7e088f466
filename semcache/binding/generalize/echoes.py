"""Echoes: words of a prompt that repeat a parameter's value among words of their own.

In "book a call with Ada titled 'Call with Ada'" the title is no value of its own: it changes with
the name. Where the plan does not have it, the plan may serve whoever is called the same way in
both.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from semcache.binding.generalize.parties import WORD, rarity
from semcache.binding.pieces import Pin
from semcache.prompts.parameter import Parameter


def echoing(pins: Sequence[Pin], params: Sequence[Parameter]) -> list[Pin]:
    """Return `pins`, those on words that repeat a parameter's value as echoes of it."""
    free = _repeatable(params, {pin.param for pin in pins})
    if not free:
        return list(pins)
    # Longest first: "New York" must not be found in "New York City" where both are values.
    values = sorted(free, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, values))})(?!\w)", re.IGNORECASE)
    return [_echo(pin, pattern, free) for pin in pins]


def _repeatable(params: Sequence[Parameter], pinned: set[str]) -> dict[str, str]:
    """Return value → parameter, for values that are the prompt's own words and not common."""
    return {
        param.value.casefold(): param.name
        for param in params
        if isinstance(param.value, str)
        and param.mention is not None
        and param.mention.casefold() == param.value.casefold()
        and param.name not in pinned
        and rarity(param.value) >= WORD
    }


def _echo(pin: Pin, pattern: re.Pattern[str], free: dict[str, str]) -> Pin:
    if pin.why != "unknown" or not isinstance(pin.value, str):
        return pin
    parts = pattern.split(pin.value)
    if len(parts) == 1:
        return pin
    parts[1::2] = [free[value.casefold()] for value in parts[1::2]]
    return replace(pin, why="echo", echo=tuple(parts))
