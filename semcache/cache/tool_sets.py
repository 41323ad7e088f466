"""Tool sets: what plans may call in one lookup, parsed once and remembered."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from semcache.canonical import Json, JsonObject, as_object, dumps, loads
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import InvalidInput, InvalidJson
from semcache.plans.document import SdkModel
from semcache.process.forks import Lock
from semcache.process.memo import Lru
from semcache.prompts.recognizers.closed_values import ClosedValues, Scalar

Tools: TypeAlias = Catalog | Sequence[object]
"""The tools of one call: a catalog, or their definitions as OpenAI, Anthropic and MCP have them."""

REMEMBERED = 256
"""Tool sets that are kept parsed; a service with more of them parses again, some 0.1 ms a tool."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolSet:
    """What plans may call, and the closed values by which prompts are read."""

    catalog: Catalog | None
    """None: nobody said."""
    closed: ClosedValues | None
    """None: there are none."""
    fingerprint: str
    """That of the catalog; empty without one."""


class ToolSets:
    """The tool sets of the last calls. Safe from several threads."""

    def __init__(self, translations: Mapping[str, Mapping[str, Scalar]]) -> None:
        self._translations = translations
        self._kept: Lru[str | Catalog, ToolSet] = Lru(REMEMBERED)
        self._lock = Lock()
        """Held over each step on what is kept: to compare catalogs takes more than one."""

    def of(self, tools: Tools) -> ToolSet:
        """Return the tool set of `tools`; the same object for those that are equal.

        Raises:
            InvalidInput: they are no list of tool definitions.
            InvalidOperation: two of them have one name.
        """
        # The text costs a tenth of parsing; a set in another order is parsed once more.
        key = tools if isinstance(tools, Catalog) else _text(tools)
        with self._lock:
            known = self._kept.use(key)
        if known is not None:
            return known
        catalog = key if isinstance(key, Catalog) else catalog_of(_list(key))
        made = self.made(catalog)
        # A prompt that was read with one of two equal sets is then known to the other.
        made = next((one for one in self._kept.values() if one.catalog == catalog), made)
        with self._lock:
            self._kept.put(key, made)
        return made

    def made(self, catalog: Catalog | None) -> ToolSet:
        """Return the tool set of a catalog, which is not remembered."""
        if catalog is None:
            return ToolSet(None, ClosedValues({}, translations=self._translations) or None, "")
        closed = ClosedValues(
            catalog.closed,
            synonyms=catalog.synonyms,
            labels=catalog.labels,
            translations=self._translations,
        )
        return ToolSet(catalog, closed or None, catalog.fingerprint)

    def known(self, fingerprint: str) -> ToolSet | None:
        """Return the remembered tool set with that fingerprint; None if it is forgotten."""
        return next((one for one in self._kept.values() if one.fingerprint == fingerprint), None)


def _text(tools: object) -> str:
    if isinstance(tools, str | Mapping) or not isinstance(tools, Sequence):
        raise InvalidInput(
            f"tools is {tools!r:.120}; expected a list of tool definitions, or a Catalog"
        )
    try:
        return json.dumps(tools, default=_dumped)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"tools are no JSON: {error}") from error


def _dumped(part: object) -> object:
    if isinstance(part, SdkModel):
        return part.model_dump(mode="json")
    if isinstance(part, Mapping):
        return dict(part)
    raise TypeError(f"{part!r:.80} is no tool definition; expected JSON or a model of an SDK")


def _list(text: str) -> list[Json]:
    try:
        return cast("list[Json]", loads(text, what="tools"))
    except InvalidJson as error:
        raise InvalidInput(str(error)) from error


# Tool definitions as SDKs write them, read as the catalog of one call.
#
# Understood are function tools of OpenAI (chat and responses), tools of Anthropic and of MCP. A
# tool that has no JSON Schema, such as a web search that the maker of the model runs, counts as a
# whole.

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
