"""Example 8: tools of your own, hooks before and after them, and the cache as an MCP server.

    python notebooks/example_08_tools.py

Typed functions become operations; a hook looks at what goes in and refuses, or changes what comes
out; an observer hears of every event. Then the SDK's own client asks the same cache by MCP, in this
process. Offline; needs the extra `mcp`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mcp import Client

from semcache import Operation, SemCache, catalog_from, operation
from semcache.canonical import JsonObject
from semcache.errors import OperationFailed
from semcache.events import Event
from semcache.server.calls import Calls
from semcache.server.mcp import server
from semcache.testing import FakeClock, HashEmbedder


@operation(effect="read")
def convert(amount: float, rate: float) -> float:
    """Convert an amount by a rate."""
    return round(amount * rate, 2)


@operation(effect="read")
def read_file(path: str) -> str:
    """Read a file of the shop."""
    return f"contents of {path}"


def hooked(
    one: Operation,
    before: Callable[[str, JsonObject], None],
    after: Callable[[str, object], object],
) -> Operation:
    """Return the operation with a hook before it, which may raise, and one after it."""
    code = one.call
    if code is None:
        return one

    def call(given: JsonObject) -> object:
        before(one.name, given)
        return after(one.name, code(given))

    return replace(one, call=call)


def before(name: str, given: JsonObject) -> None:
    """Refuse what leaves the shop's folder."""
    if ".." in str(given.get("path", "")):
        raise PermissionError(f"{name} may not leave the folder")


def after(name: str, output: object) -> object:
    """Say who gave it."""
    return {"by": name, "value": output}


def plan(name: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return the plan that calls one operation."""
    return {
        "start_node": {"route": "call"},
        "call": {"operation": name, "input": given, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.call"}},
    }


def main() -> None:
    """Call tools, be refused, count events, and ask by MCP."""
    heard: Counter[str] = Counter()

    def observe(event: Event) -> None:
        heard[type(event).__name__] += 1

    catalog = catalog_from(*(hooked(one, before, after) for one in (convert, read_file)))
    with SemCache.open(
        catalog=catalog, embedder=HashEmbedder(), clock=FakeClock(), observer=observe
    ) as semcache:
        semcache.cache.store(
            "convert 10 at 1.1", plan("convert", amount=10, rate=1.1),
            params={"amount": 10, "rate": 1.1},
        )  # fmt: skip
        print("converted:", semcache.run("convert 20 at 0.5").value)
        try:
            semcache.execute(plan("read_file", path="../secrets"))
        except OperationFailed as error:
            print("refused:", error)
        print("events:", {name: heard[name] for name in ("NodeOpened", "NodeClosed")})
        print("by MCP:", asyncio.run(by_mcp(semcache)))


async def by_mcp(semcache: SemCache) -> object:
    """Return what the SDK's client is answered."""
    async with Client(server(Calls(semcache), tenant="default")) as client:
        tools = await client.list_tools()
        result = await client.call_tool("ask", {"prompt": "convert 30 at 2.5"})
        content: Any = result.structured_content
        return len(tools.tools), content["value"], content["tier"]


if __name__ == "__main__":
    main()
