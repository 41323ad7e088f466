"""Tool definitions as SDKs write them, read as the catalog of one call.

Understood are function tools of OpenAI (chat and responses), tools of Anthropic and of MCP. A tool
that has no JSON Schema, such as a web search that the maker of the model runs, counts as a whole.
"""

from collections.abc import Iterable

from semcache.canonical import Json, JsonObject, as_object, dumps
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import InvalidInput

_SCHEMAS = ("parameters", "input_schema", "inputSchema")
# What tells a provider how to run or bill a call and leaves its meaning as it is.
_NO_MEANING = frozenset({"cache_control", "defer_loading", "strict"})


def catalog_of(tools: Iterable[Json]) -> Catalog:
    """Return the catalog of tool definitions, in whatever order they stand.

    What MCP says only reads has the effect `read`; any other tool may write.

    Raises:
        InvalidInput: a definition names no tool.
        InvalidOperation: two tools have one name.
    """
    return Catalog(_operation(tool, number) for number, tool in enumerate(tools))


def _operation(tool: Json, number: int) -> Operation:
    document = as_object(tool)
    # Chat completions of OpenAI hold the definition one level deeper than all others.
    described = as_object(document.get("function")) or document
    name = described.get("name") or document.get("type")
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(
            f"tools[{number}] is {tool!r:.120}; expected a tool with a name, such as "
            '{"type": "function", "function": {"name": "…", "parameters": {…}}}'
        )
    schema = next((described[key] for key in _SCHEMAS if key in described), None)
    if schema is None and document.get("type", "function") != "function":
        whole: JsonObject = {k: v for k, v in document.items() if k not in _NO_MEANING}
        return Operation(name=name, summary=dumps(whole), input_schema={})
    return Operation(
        name=name,
        summary=str(described.get("description") or described.get("title") or ""),
        input_schema=as_object(schema),
        output_schema=as_object(described.get("outputSchema", described.get("output_schema"))),
        effect="read" if _only_reads(described) else "write",
    )


def _only_reads(described: JsonObject) -> bool:
    hints = as_object(described.get("annotations"))
    return hints.get("readOnlyHint", hints.get("read_only_hint")) is True
