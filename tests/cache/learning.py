"""A cache that learns: plans for it, and what it wrote down."""

import json

from semcache.cache.plan_cache import PlanCache
from semcache.canonical import Json, JsonObject
from tests.calling import calling


def plan(what: str, **values: Json) -> JsonObject:
    """Return a plan that asks for `what`."""
    return calling("shop.query", what=what, **values)


def evidence(cache: PlanCache, tenant: str = "default") -> JsonObject:
    """Return what the cache wrote down of a tenant's evidence."""
    cache.flush()
    note = cache._store.get_note(tenant, "evidence")
    return json.loads(note) if note else {}


def plan_it(cache: PlanCache, prompt: str, what: str, tenant: str = "default") -> None:
    """Look `prompt` up and let it be planned, as a caller with a planner does."""
    if not cache.lookup(prompt, tenant=tenant):
        cache.store(prompt, plan(what), tenant=tenant)
