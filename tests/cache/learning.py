"""A cache that learns: plans for it, what it wrote down, and a verifier that teaches it a word."""

from semcache import PlanCache
from semcache.canonical import Json, JsonObject
from semcache.ports import Verification
from tests.calling import calling


def plan(what: str, **values: Json) -> JsonObject:
    """Return a plan that asks for `what`."""
    return calling("shop.query", what=what, **values)


def plan_it(cache: PlanCache, prompt: str, what: str, tenant: str = "default") -> None:
    """Look `prompt` up and let it be planned, as a caller with a planner does."""
    if not cache.lookup(prompt, tenant=tenant):
        cache.store(prompt, plan(what), tenant=tenant)


class SameWord:
    """A verifier that knows that one word means another, and confirms nothing else."""

    def __init__(self, word: str, other: str) -> None:
        self._word, self._other = word, other
        self.query: list[Verification] = []

    def verify(self, question: Verification) -> bool:
        self.query.append(question)
        return self._read(question.prompt) == self._read(question.planned)

    def _read(self, prompt: str) -> set[str]:
        words = prompt.replace(self._word, self._other).split()
        return {word for word in words if not word.isdigit()}
