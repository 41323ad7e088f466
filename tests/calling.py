"""Plans of one call, and what lookups made of them: most tests need no other."""

from semcache import Hit, Miss
from semcache.canonical import Json, JsonObject


def calling(operation: str, /, **given: Json) -> JsonObject:
    """Return a plan that calls `operation` with `given` and answers with what it gives."""
    return {
        "start_node": {"route": "call"},
        "call": {"operation": operation, "input": given, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.call"}},
    }


def hit(found: object) -> Hit:
    """Return `found` as the hit that it must be."""
    assert isinstance(found, Hit), str(found)
    return found


def given_input(found: object) -> Json:
    """Return the input of the call in the plan that was served; a miss fails the test."""
    call = hit(found).plan.to_dict()["call"]
    assert isinstance(call, dict)
    return call["input"]


def missed(found: object) -> Miss:
    """Return `found` as the miss that it must be."""
    assert isinstance(found, Miss), str(found)
    return found
