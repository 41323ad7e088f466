"""What hits saved, by what planning cost when it was needed."""

import threading
from collections.abc import Mapping
from typing import NamedTuple

from semcache.canonical import Json, JsonObject
from semcache.events import ModelCalled, TokenPrices


class Spending(NamedTuple):
    """What models were asked for, or were not asked for thanks to hits."""

    calls: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    cost: float = 0.0
    """In the currency of the prices."""

    def plus(self, other: "Spending", times: float = 1.0) -> "Spending":
        """Return the sum of this and `times` the other."""
        return Spending(*(mine + times * more for mine, more in zip(self, other, strict=True)))


def spent(event: ModelCalled, prices: TokenPrices) -> Spending:
    """Return what a call of a model spent; nothing if it was remembered."""
    if event.cached:
        return Spending()
    asked, said = event.prompt_tokens, event.completion_tokens
    return Spending(1.0, asked, said, prices.of(asked, said))


class SavingsEstimate:
    """Estimates what hits save: each one, what a planned miss has cost on average up to then.

    All calls of models count towards the misses that were planned: normalizing, planning, repeats.
    Before the first planned miss a hit saves nothing, so what is told is rather too little than too
    much. Safe from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = Spending()
        self._planned = 0

    def called(self, spent: Spending) -> None:
        """Take in what a call of a model spent."""
        with self._lock:
            self._spent = self._spent.plus(spent)

    def planned(self) -> None:
        """Take in that a prompt was planned."""
        with self._lock:
            self._planned += 1

    def hit(self) -> Spending:
        """Return what a hit saves, as far as is known now."""
        with self._lock:
            if not self._planned:
                return Spending()
            return Spending().plus(self._spent, 1 / self._planned)


def saved_by_hits(
    served: Mapping[str, int], spent: Mapping[str, int], prices: TokenPrices
) -> JsonObject:
    """Return what hits saved: what as many plans would have cost, less what choosing them did.

    `served`: hits by tier. A plan as it was on average, by the counts of `Statistics.spent`; empty
    before a model made one, or its maker told what it cost, and before one hit: a plan that rules
    make costs no call. `cost` is in the currency of the prices, and left out where it is nothing.
    """
    hits, made = sum(served.values()), spent.get("plan:calls", 0)
    if not made or not hits:
        return {}
    prompt, completion, milliseconds = (
        hits * spent.get(f"plan:{name}", 0) / made - spent.get(f"select:{name}", 0)
        for name in ("prompt_tokens", "completion_tokens", "milliseconds")
    )
    cost: Json = round(prices.of(prompt, completion), 4)
    return {
        "plans": hits,
        "prompt_tokens": round(prompt),
        "completion_tokens": round(completion),
        "seconds": round(milliseconds / 1000, 1),
        **({"cost": cost} if cost else {}),
    }
