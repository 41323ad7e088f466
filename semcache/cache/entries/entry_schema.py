"""The schema of an entry in JSON: `Entry.to_json` writes it, for a store and for `export`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.binding.codecs import Wording
from semcache.binding.template_schema import WrittenTemplate
from semcache.prompts.tokens import SLOT, check_prompt
from semcache.schemas import MOST, STRICT, AnyValue, Name, Seconds, Value, Word

MAX_CHARS = 1_000_000
"""Characters of a prompt: as many as settings may allow."""

_Text = Annotated[str, Field(max_length=2 * MAX_CHARS)]  # folding and masking add a little


def _prompt(text: str) -> str:
    check_prompt(text, max_chars=MAX_CHARS)
    return text


@with_config(STRICT)
class _Slot(TypedDict):
    kind: Annotated[str, Field(pattern=r"^[\w.]+$")]
    name: Word
    before: Word
    mention_text: _Text
    value: Value
    relative: bool


@with_config(STRICT)
class TemplateTextDoc(TypedDict):
    """A template text as JSON."""

    text: _Text
    slots: list[_Slot]


@with_config(STRICT)
class _Parameter(TypedDict):
    name: Name
    value: AnyValue
    mention: str | None


def _slots_agree(doc: TemplateTextDoc) -> TemplateTextDoc:
    # Their types may differ: the text has that of the name where values are given.
    written = SLOT.findall(doc["text"])
    if len(written) != len(doc["slots"]):
        raise ValueError(f"the text has the slots {written!r}; {len(doc['slots'])} are listed")
    return doc


_Template = Annotated[TemplateTextDoc, AfterValidator(_slots_agree)]


@with_config(STRICT)
class EntryDoc(TypedDict):
    """An entry as JSON."""

    format: Literal[2]
    prompt: Annotated[str, AfterValidator(_prompt)]
    template: _Template
    given: _Template | None
    plan: WrittenTemplate
    named: list[Name]
    wordings: dict[str, Wording]
    key: _Text
    schema: Word
    catalog: Word
    grounding: Word
    operations: list[Name]
    writes: bool
    tags: list[Name]
    planner: Word
    created_s: Seconds
    expires_s: Seconds | None
    fades_s: Seconds | None
    cost_s: Annotated[float, Field(ge=0, le=MOST)]
    examples: list[list[_Parameter]]


def _agrees(doc: EntryDoc) -> EntryDoc:
    """Refuse an entry whose plan template is not one of its template text."""
    plan, slots = doc["plan"], doc["template"]["slots"]
    if len(plan["carriers"]) != len(slots):
        raise ValueError(
            f"the template text has {len(slots)} slots, and the plan has "
            f"{len(plan['carriers'])} carriers for them"
        )
    for name in plan["carriers"]:
        if name not in doc["wordings"]:
            raise ValueError(f"it does not tell the wording of {name!r}")
    return doc


SCHEMA: TypeAdapter[EntryDoc] = TypeAdapter(Annotated[EntryDoc, AfterValidator(_agrees)])
"""Reads what `Entry.to_json` writes."""
