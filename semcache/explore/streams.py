"""Streams: prompts with the plans that they should get, read from files and checked.

A stream has one JSON object a line: `{"id", "scope", "text", "params": [{"name", "value", "text"}],
"plan": {...} | null}`. `scope` is the tenant; `plan` is what a perfect planner returns for that
prompt, null where no cached plan may be served. A log of one's own needs only the prompt and the
plan that was made for it; see `read_log`.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from semcache.binding.extraction import extract
from semcache.cache.query import check_tenant, path_of
from semcache.canonical import Json, JsonObject, leaves, loads, plain
from semcache.errors import InvalidInput, InvalidJson, InvalidPrompt, InvalidStream
from semcache.explore.score import plan_shape, plan_text
from semcache.files import binary, unreadable
from semcache.plans.document import enclosed
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import Parameter, by_name
from semcache.prompts.tokens import check_prompt

FIELDS = ("id", "scope", "text", "params", "plan")
"""What each line of a stream has."""
EXPECTED = "one JSON object a line"
LISTED = f"expected {EXPECTED}, as `jq -c '.[]'` writes a list"


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt of a stream and what a perfect planner makes of it."""

    id: str
    scope: str
    """The tenant."""
    text: str
    params: tuple[Parameter, ...]
    """The values that the plan depends on, as a planner tells them on a miss."""
    plan: JsonObject | None
    """The right plan, with this prompt's own values; None: no cached plan may be served."""

    @property
    def values(self) -> dict[str, Json]:
        """Name → value, as a caller with structured values gives them."""
        return {parameter.name: parameter.value for parameter in self.params}

    @property
    def shape(self) -> str | None:
        """What its plan shares with plans of its tenant for other values; computed each time.

        None where no plan may be served. Without parameters, the values are those recognized in
        the prompt that stand in the plan.
        """
        if self.plan is None:
            return None
        params = self.params or _recognized(self.text, self.plan)
        return f"{self.scope}\0{plan_text(plan_shape(self.plan, params))}"


def read_stream(path: str | Path, *, limit: int | None = None) -> tuple[Row, ...]:
    """Return the rows of a stream in file order, at most `limit`.

    Raises:
        InvalidStream: the file cannot be read, a line is not JSON or lacks a field, a field is of
            the wrong kind, or there are no rows; the message names file and line.
        InvalidInput: `path` is no path, or `limit` is under 1.
    """
    return _read(path_of(path), _stream_row, limit)


def read_log(path: str | Path, *, limit: int | None = None) -> tuple[Row, ...]:
    """Return the rows of a log of prompts and plans in file order, at most `limit`.

    One JSON object a line with `text` (or `prompt`) and `plan` (an object, its JSON text, or null).
    Optional: `id`, `scope` (or `tenant`), and `params`, as a list of `{"name", "value", "text"}` or
    as an object name → value; without, those that `PlanCache.store` takes from the plan. Other
    fields are ignored.

    Raises:
        InvalidStream, InvalidInput: as `read_stream` does.
    """
    return _read(path_of(path), _log_row, limit)


def rows_from(records: Iterable[Mapping[str, object]]) -> tuple[Row, ...]:
    """Return log records that are in memory already as rows; see `read_log` for their fields.

    Raises:
        InvalidStream: a record lacks a field or cannot be used; the message names its number.
        InvalidInput: `records` cannot be gone through one by one.
    """
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise InvalidInput(f"records is {records!r}; expected a list of mappings, one a prompt")
    rows = []
    for number, record in enumerate(records, 1):
        try:
            rows.append(_log_row(_document(record), number))
        except (InvalidInput, _BadLine) as error:
            raise InvalidStream(f"record {number}: {error}") from error
    return tuple(rows)


def _document(record: object) -> JsonObject:
    if not isinstance(record, Mapping):
        raise _BadLine(f"it is {record!r}; expected a mapping with `prompt` and `plan`")
    return cast(JsonObject, plain(record, what="the record"))


def rows_in(rows: object) -> tuple[Row, ...]:
    """Return `rows`.

    Raises:
        InvalidInput: they are none, or there are none.
    """
    way = "`rows_from` makes rows of records, `read_stream` and `read_log` make them of a file"
    if isinstance(rows, bytes | Mapping) or not isinstance(rows, Iterable):
        raise InvalidInput(f"rows is {rows!r}; expected a path or rows: {way}")
    found = tuple(rows)
    for number, row in enumerate(found, 1):
        if not isinstance(row, Row):
            raise InvalidInput(f"row {number} is {row!r}; expected a Row: {way}")
    if not found:
        raise InvalidInput("there are no rows; expected at least one")
    return found


def check_count(name: str, value: object, *, least: int = 1, optional: bool = True) -> None:
    """Raise `InvalidInput` unless `value` is a whole number of `least` or more.

    `optional`: None will do as well.
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        nothing = ", or None" if optional else ""
        raise InvalidInput(
            f"{name} is {value!r}; expected a whole number of {least} or more{nothing}"
        )


class _BadLine(Exception):
    """Why one line cannot be used; the reader adds where it stands."""


_MakeRow = Callable[[JsonObject, int], Row]


def _read(path: Path, make: _MakeRow, limit: int | None) -> tuple[Row, ...]:
    check_count("limit", limit)
    rows: list[Row] = []
    for number, line in lines_of(path):
        if limit is not None and len(rows) >= limit:
            break
        rows.append(_parsed(path, number, line, make))
    return tuple(rows)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank, with its number from 1; what a line holds is not checked.

    Raises:
        InvalidStream: the file cannot be read, is not text, or has no line that is not blank.
    """
    empty = True
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if number == 1 and (found := binary(text)):
                    what, way = found
                    raise InvalidStream(f"{str(path)!r} is {what}; expected {EXPECTED}: {way}")
                if text.strip():
                    empty = False
                    yield number, text
    except OSError as error:
        raise InvalidStream(unreadable(path, error, expected=EXPECTED)) from error
    if empty:
        raise InvalidStream(f"{str(path)!r} has no rows; expected {EXPECTED}")


def object_of(line: bytes) -> JsonObject:
    """Return the object on a line of a stream or log.

    Raises:
        InvalidJson: it is not UTF-8 text, or not a JSON object.
    """
    try:
        doc = loads(line.decode(), what="the line")
    except UnicodeDecodeError as error:
        raise InvalidJson(
            f"the line is not UTF-8 text: {error.reason} at byte {error.start}; write the file as "
            "UTF-8, as in `iconv -f latin1 -t utf-8`"
        ) from error
    except InvalidJson as error:
        raise InvalidJson(f"{error}; {LISTED}") from error
    if not isinstance(doc, dict):
        raise InvalidJson(f"the line is of type {type(doc).__name__}; {LISTED}")
    return doc


def _parsed(path: Path, number: int, line: bytes, make: _MakeRow) -> Row:
    try:
        return make(object_of(line), number)
    except (InvalidInput, _BadLine) as error:
        raise InvalidStream(f"{path}:{number}: {error}") from error


def _stream_row(doc: JsonObject, number: int) -> Row:
    del number  # a stream names its rows
    missing = [name for name in FIELDS if name not in doc]
    if missing:
        names = ", ".join(map(repr, missing))
        raise _BadLine(
            f"no field {names}; expected a line of a stream (what has only `text` and `plan` is "
            "read as a log: `--log`, or `log=True`)"
        )
    if isinstance(doc["plan"], str):
        raise _BadLine(
            "the plan is text; expected an object or null (a log, by `--log` or `log=True`, may "
            "hold its JSON text)"
        )
    return _row(doc, id=doc["id"], scope=doc["scope"])


def _log_row(doc: JsonObject, number: int) -> Row:
    if "plan" not in doc:
        raise _BadLine("no field 'plan'; expected what the planner returned, or null")
    if _first(doc, "text", "prompt") is None:
        raise _BadLine("no field 'text' or 'prompt'; expected the words that were asked")
    known, scope = doc.get("id"), _first(doc, "scope", "tenant")
    row = _row(
        doc,
        id=number if known is None else known,
        scope="default" if scope is None else scope,
    )
    # As `store` reads them from the plan where nobody gave any.
    return row if "params" in doc else replace(row, params=extract(row.plan, row.text))


def _first(doc: JsonObject, *names: str) -> Json:
    return next((doc[name] for name in names if name in doc), None)


def _row(doc: JsonObject, *, id: Json, scope: Json) -> Row:  # noqa: A002 - the field's name
    text = _first(doc, "text", "prompt")
    if not isinstance(text, str):
        raise _BadLine(f"the prompt is {text!r}; expected text")
    return Row(
        id=_named("id", id),
        scope=_tenant(scope),
        text=text,
        params=_params(doc.get("params")),
        plan=_plan(doc["plan"]),
    )


def _named(field: str, value: Json) -> str:
    # What a service calls its tenants and prompts may be numbers; null would be one more of them.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _BadLine(f"the {field} is {value!r}; expected text or a whole number")
    return str(value)


def _tenant(value: Json) -> str:
    tenant = _named("scope", value)
    check_tenant(tenant)
    return tenant


def _params(params: Json) -> tuple[Parameter, ...]:
    if params is None:
        return ()
    if isinstance(params, dict):
        return by_name(params)
    if not isinstance(params, list):
        raise _BadLine(f"params is {params!r}; expected a list or an object")
    return tuple(map(_parameter, params))


def _parameter(doc: Json) -> Parameter:
    if not isinstance(doc, dict) or not {"name", "value"} <= doc.keys():
        raise _BadLine(f"the parameter {doc!r} has no name or no value")
    return Parameter(
        cast(str, doc["name"]), doc["value"], mention=cast("str | None", doc.get("text"))
    )


def _plan(plan: Json) -> JsonObject | None:
    if isinstance(plan, str):
        try:
            plan = loads(plan, what="the plan")
        except InvalidJson as error:
            raise _BadLine(f"{error}; expected an object or null") from error
    plan = enclosed(plan)
    if plan is None or isinstance(plan, dict):
        return plan
    raise _BadLine(f"the plan is {plan!r}; expected an object, a list of calls, or null")


def _recognized(text: str, plan: JsonObject) -> Sequence[Parameter]:
    """Return the values of `text` that stand in `plan`, named alike for prompts of one shape."""
    try:
        mentions = find_mentions(check_prompt(text))
    except InvalidPrompt:
        return ()
    standing = {plan_text(value) for _, value in leaves(plan)}
    found: list[Parameter] = []
    for mention in mentions:
        value = next((v for v in (mention.value, mention.text) if plan_text(v) in standing), None)
        if value is not None:
            found.append(Parameter(f"{mention.kind}{len(found)}", value, mention=mention.text))
    return found
