"""The schema of a plan template in JSON: `PlanTemplate.to_json` writes it."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, with_config
from typing_extensions import TypedDict

from semcache.binding.bindings import Why
from semcache.binding.codecs import CODECS
from semcache.canonical import Json, JsonObject, Pointer, pointer_text, value_at
from semcache.plans.codec import adopt
from semcache.schemas import STRICT, AnyValue, Name, Value, Word

_Step = Annotated[str, Field(max_length=10_000)] | Annotated[int, Field(ge=0, le=10**9)]
_Path = Annotated[tuple[_Step, ...], Field(strict=False, max_length=100)]
_Place = Annotated[tuple[_Step, ...], Field(strict=False, min_length=1, max_length=100)]
_Names = Annotated[tuple[Name, ...], Field(strict=False)]
_Texts = Annotated[tuple[str, ...], Field(strict=False)]
_Row = Field(strict=False)  # a list, as JSON has it, becomes a tuple


def _gathered(row: Json) -> Json:
    """Return a row with all that follows its fourth member as one."""
    return [*row[:4], row[4:]] if isinstance(row, list) else row


_BindingRow = Annotated[tuple[_Place, Name, str, _Path, _Texts], _Row, BeforeValidator(_gathered)]


@with_config(STRICT)
class TemplateDoc(TypedDict):
    """A plan template as JSON."""

    version: Literal[1]
    format: Literal["routes", "tasks", "program", "document"]
    plan: dict[str, Value]
    params: list[Annotated[tuple[Name, AnyValue, str | None], _Row]]
    bindings: list[_BindingRow]
    """At which place, of which parameter, by which codec, which part of it; text around it."""
    pinned: list[
        Annotated[tuple[Name, _Path, Value, Why, _Texts], _Row, BeforeValidator(_gathered)]
    ]
    """Of which parameter, which part of it, the value, why; what it echoes."""
    equal: list[Annotated[_Names, Field(min_length=1)]]
    carriers: _Names
    perishable: Word
    fading: bool


def agreeing(doc: TemplateDoc) -> TemplateDoc:
    """Return a template whose parts speak of nothing that the others do not have.

    Raises:
        ValueError: they do.
    """
    names = {name for name, *_ in doc["params"]}
    if len(names) < len(doc["params"]):
        raise ValueError("two of its params have the same name")
    _check_bindings(doc["plan"], doc["bindings"])
    echoed = [name for *_, echo in doc["pinned"] for name in echo[1::2]]
    for *_, echo in doc["pinned"]:
        if echo and not len(echo) % 2:
            raise ValueError("what a pin echoes ends in a name; expected a text at each end")
    said = [*(row[1] for row in doc["bindings"]), *(row[0] for row in doc["pinned"]), *echoed]
    for name in (*said, *doc["carriers"], *(one for group in doc["equal"] for one in group)):
        if name not in names:
            raise ValueError(f"it speaks of the parameter {name!r}, and has none of that name")
    found = adopt(doc["plan"]).format
    if found != doc["format"]:
        raise ValueError(f"its plan is of the format {found!r}; it says {doc['format']!r}")
    return doc


def _check_bindings(plan: JsonObject, rows: list[_BindingRow]) -> None:
    inline: dict[Pointer, bool] = {}
    for at, _, codec, _, around in rows:
        strange = set(codec.split("|")) - CODECS.keys()
        if strange:
            raise ValueError(f"a binding has the codec {min(strange)!r}, which this version lacks")
        place = repr(pointer_text(at))
        try:
            bound = value_at(plan, at)
        except LookupError as error:
            raise ValueError(f"a value is bound to {place}, which is not there") from error
        if around and not (len(around) == 2 and isinstance(bound, str)):
            raise ValueError(f"a binding at {place} is not inside a text, with text on both sides")
        if at in inline and not (around and inline[at]):
            raise ValueError(f"two values are bound to {place}")
        inline[at] = bool(around)
    for at in inline:
        if any(at[:length] in inline for length in range(1, len(at))):
            raise ValueError(f"values are bound to {pointer_text(at)!r} and to what it is part of")


WrittenTemplate: TypeAlias = Annotated[TemplateDoc, AfterValidator(agreeing)]
"""What `PlanTemplate.to_json` writes."""
