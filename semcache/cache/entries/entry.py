"""An entry: a plan template, what it was made from, and when it may be served."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from semcache.binding.bind import bind
from semcache.binding.codecs import Wording
from semcache.binding.template import PlanTemplate
from semcache.cache.entries.extraction import EntryExtraction
from semcache.canonical import Json, JsonObject, digest, dumps, leaves, loads, spelled
from semcache.errors import BindingError, InvalidInput, InvalidPlan, StoreCorrupt
from semcache.matching.gates import PinnedWords, Side, words_and_value
from semcache.plans.codec import adopt
from semcache.ports import Record, Vector
from semcache.process.memo import memoized
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.redaction import is_stand_in
from semcache.prompts.template import Slot, TemplateText

if TYPE_CHECKING:
    from semcache.cache.entries.entry_schema import TemplateTextDoc


FORMAT = 2
"""Version of the JSON of an entry; a reader refuses others."""
_OF_PARTS = frozenset({"echo", "shape"})
"""Pins that other words than the source's may satisfy."""


@dataclass(frozen=True)
class Entry:
    """What the cache keeps of one planned prompt. What follows from it is worked out once."""

    tenant: str
    prompt: str
    """The prompt that it was planned for."""
    template: TemplateText
    """Template text and slots of that prompt."""
    plan: PlanTemplate
    """Its `carriers` name, for each slot of the template, the parameter that the slot carries."""
    named: tuple[str, ...]
    """Names of the parameters that came with the plan; the others were read from the prompt."""
    wordings: Mapping[str, Wording]
    """Parameter name → how its words carry its value."""
    key: str = ""
    """Prompt Schema Key, for people; empty without a complete schema."""
    schema: str = ""
    """Digest of the schema's identity; empty without a complete schema."""
    catalog: str = ""
    """Fingerprint of the catalog that it was planned against; empty without one."""
    operations: tuple[str, ...] = ()
    """Names of the operations that the plan may call."""
    writes: bool = False
    """Whether one of them has effect `write`, as far as the catalog told."""
    grounding: str = ""
    """Which grounding was in force."""
    tags: tuple[str, ...] = ()
    planner: str = ""
    """Which planner made the plan."""
    created_s: float = 0.0
    """Epoch seconds."""
    expires_s: float | None = None
    """Epoch seconds after which it is never served; None: never expires."""
    fades_s: float | None = None
    """Epoch seconds after which it serves only callers that give every value; None: never."""
    without_given: TemplateText | None = None
    """Template text without the values that came with the plan, by whatever words they were said;
    None if none came."""
    cost_s: float = 1.0
    """Seconds that it took to make the plan; 1 where nobody said."""
    examples: tuple[tuple[Parameter, ...], ...] = field(default=())
    """Parameters of the prompts that were planned into this entry, newest last; bounded."""

    @property
    def id(self) -> str:
        """Hex digest of what tells entries apart: template text, fixed values, fingerprints."""
        fixed: list[Json] = [[p.param, list(p.path), p.value] for p in self.plan.pinned]
        names: list[Json] = [*sorted(name_key(name) for name in self.named)]
        identity: Json = [self.template.text, fixed, names, self.catalog, self.grounding]
        return digest(identity)[:32]

    @cached_property
    def fixed_slots(self) -> tuple[int, ...]:
        """Positions of the slots whose words must stay what they were."""
        pinned = {pin.param for pin in self.plan.pinned}
        return tuple(i for i, name in enumerate(self.plan.carriers) if name in pinned)

    @cached_property
    def label(self) -> str:
        """The readable key: the Prompt Schema Key, else the template text."""
        return self.key or self.template.text

    @cached_property
    def side(self) -> Side:
        """The entry's side of a pair."""
        names = frozenset(name_key(name) for name in self.named)
        return Side(self.template, names, self.catalog, self.grounding, held=self._held())

    def _held(self) -> tuple[PinnedWords, ...]:
        pinned = {p.param for p in self.plan.pinned if p.why not in _OF_PARTS and not p.path}
        own = {
            (slot.kind, slot.mention_text)
            for slot in self.given.slots
            if not slot.name and slot.kind != "quoted"
        }
        kept = []
        for slot, name in zip(self.template.slots, self.plan.carriers, strict=False):
            # What "yesterday" comes to is compared when it is bound, where its words are not held.
            if name in pinned and (not slot.relative or slot.value == slot.mention_text):
                free = name in self.named or (slot.kind, slot.mention_text) not in own
                kept.append(PinnedWords(*words_and_value(slot), unless_given=free))
        return tuple(kept)

    @cached_property
    def given(self) -> TemplateText:
        """The template text as callers see it that give the values."""
        return self.template if self.without_given is None else self.without_given

    @cached_property
    def reading(self) -> EntryExtraction:
        """How it gets its values from another prompt."""
        return EntryExtraction.of(self.plan, self.named, self.wordings)

    @cached_property
    def lifetime(self) -> tuple[float, float]:
        """Epoch seconds between which it is served; see `lifetime`."""
        return lifetime(self)

    @property
    def labels(self) -> tuple[str, ...]:
        """What it can be invalidated by, as a store keeps it; see `Record.labels`."""
        labels = [f"tag:{tag}" for tag in self.tags]
        labels += [f"operation:{name}" for name in self.operations]
        return (*labels, f"key:{self.key}") if self.schema else tuple(labels)

    def record(self, vector: Vector | None, embedder: str) -> Record:
        """Return the entry as a store keeps it."""
        keys = [template_key(self.template, self.fixed_slots)]
        if self.schema:
            keys.append(f"schema:{self.schema}")
        return Record(
            tenant=self.tenant,
            id=self.id,
            keys=tuple(keys),
            labels=self.labels,
            body=spelled(self.to_json()),
            vector=vector,
            embedder=embedder if vector is not None else "",
            created_s=self.created_s,
            expires_s=self.expires_s,
            cost_s=self.cost_s,
        )

    def to_json(self) -> JsonObject:
        """Return the entry as JSON."""
        return {
            "format": FORMAT,
            "prompt": self.prompt,
            "template": _template_json(self.template),
            "plan": self.plan.to_json(),
            "named": list(self.named),
            "wordings": dict(self.wordings),
            "key": self.key,
            "schema": self.schema,
            "catalog": self.catalog,
            "operations": list(self.operations),
            "writes": self.writes,
            "grounding": self.grounding,
            "tags": list(self.tags),
            "planner": self.planner,
            "created_s": self.created_s,
            "expires_s": self.expires_s,
            "fades_s": self.fades_s,
            "given": None if self.without_given is None else _template_json(self.without_given),
            "cost_s": self.cost_s,
            "examples": [[_parameter_json(p) for p in group] for group in self.examples],
        }


def lifetime(kept: Entry | Record) -> tuple[float, float]:
    """Return the epoch seconds between which an entry is served.

    One that will be made later than now, by as long as it has, is not: a clock was set back since,
    and nobody can tell how old it is.
    """
    end = kept.expires_s
    return (-math.inf, math.inf) if end is None else (2 * kept.created_s - end, end)


def expired(kept: Entry | Record, now_s: float) -> bool:
    """Return whether the time that an entry had is over."""
    begin, end = lifetime(kept)
    return not begin < now_s < end


def template_key(template: TemplateText, fixed: Sequence[int] = ()) -> str:
    """Return the exact key of a template text whose slots at `fixed` keep their words.

    Those words are part of the key: a template that pins its order number has one entry an order,
    and a lookup must not try them all.
    """
    if not fixed:
        return f"template:{template.digest}"
    words: list[Json] = [template.slots[i].mention_text.casefold() for i in fixed]
    return f"template:{template.digest}:{digest([[*fixed], words])[:16]}"


def from_record(record: Record, *, lean: bool = False) -> Entry:
    """Return the entry that a record holds.

    `lean`: without its examples, which serving does not need, and with short texts that are the
    same object in all lean entries.

    Raises:
        StoreCorrupt: the body is not an entry of a version that we know.
    """
    what = f"entry {record.id!r}"
    try:
        body = loads(record.body, what=what)
        if lean and isinstance(body, dict):
            body = _interned({**body, "examples": []} if "examples" in body else body)
        return from_json(record.tenant, body, what=what)
    except InvalidInput as error:
        raise StoreCorrupt(f"{error}; remove it") from error


def from_json(tenant: str, body: Json, *, what: str) -> Entry:
    """Return the entry that `body` describes; `what` names it in errors.

    Raises:
        InvalidInput: it is not what `to_json` gives; the message says where.
    """
    # Beside its user: pydantic takes longer to load than all of semcache.
    from semcache.cache.entries.entry_schema import SCHEMA  # noqa: PLC0415
    from semcache.schemas import validated  # noqa: PLC0415

    doc = validated(SCHEMA, body, what=what)
    template, given = _template(doc["template"]), doc["given"]
    return Entry(
        tenant=tenant,
        prompt=doc["prompt"],
        template=template,
        plan=PlanTemplate.of(doc["plan"]),
        named=_shared_texts(tuple(doc["named"])),
        wordings=_shared_wordings(tuple(doc["wordings"].items())),
        key=doc["key"],
        schema=doc["schema"],
        catalog=doc["catalog"],
        operations=_shared_texts(tuple(doc["operations"])),
        writes=doc["writes"],
        grounding=doc["grounding"],
        tags=tuple(doc["tags"]),
        planner=doc["planner"],
        created_s=doc["created_s"],
        expires_s=doc["expires_s"],
        fades_s=doc["fades_s"],
        without_given=None if given is None else _without_given(given, doc["template"], template),
        cost_s=doc["cost_s"],
        examples=tuple(tuple(Parameter(**p) for p in group) for group in doc["examples"]),
    )


# Thousands of entries share names, short texts and what these are put together to.

_SHORT = 64
"""Characters of the longest text that is kept once for all lean entries that have it."""


def _interned(value: Json) -> Json:
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= _SHORT else value
    if isinstance(value, dict):
        return {sys.intern(key): _interned(below) for key, below in value.items()}
    return [_interned(below) for below in value] if isinstance(value, list) else value


@memoized(2_000)
def _shared_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return texts


@memoized(2_000)
def _shared_wordings(items: tuple[tuple[str, Wording], ...]) -> Mapping[str, Wording]:
    return dict(items)


def _without_given(
    given: "TemplateTextDoc", said: "TemplateTextDoc", template: TemplateText
) -> TemplateText:
    alike = repr(given["slots"]) == repr(said["slots"])  # `==` takes 1 for True
    return TemplateText(given["text"], template.slots) if alike else _template(given)


def faults(entry: Entry) -> Iterator[str]:
    """Yield what is wrong with the plan of an entry, which its own values must give again."""
    values = {p.name: p.value for p in entry.plan.params}
    if any(map(is_stand_in, values.values())):
        return  # its own values were redacted
    try:
        bound = bind(entry.plan, values)
        adopt(bound.plan, bound.data)
    except (InvalidPlan, BindingError) as error:
        yield f"its plan cannot be bound to its own values: {error}"
        return
    if {at for at, _ in leaves(bound.plan)} != {at for at, _ in leaves(entry.plan.plan)}:
        yield "bound to its own values, its plan is another"


def merged(
    examples: Sequence[tuple[Parameter, ...]], keep: int
) -> tuple[tuple[Parameter, ...], ...]:
    """Return the last `keep` different examples, oldest first."""
    different: dict[str, tuple[Parameter, ...]] = {}
    for group in examples:
        key = dumps([_parameter_json(parameter) for parameter in group])
        different.pop(key, None)
        different[key] = group
    return tuple(different.values())[-keep:]


def _template_json(template: TemplateText) -> JsonObject:
    return {
        "text": template.text,
        "slots": [
            {
                "kind": s.kind,
                "name": s.name,
                "before": s.before,
                "mention_text": s.mention_text,
                "value": s.value,
                "relative": s.relative,
            }
            for s in template.slots
        ],
    }


def _template(doc: "TemplateTextDoc") -> TemplateText:
    return TemplateText(doc["text"], tuple([Slot(**slot) for slot in doc["slots"]]))


def _parameter_json(parameter: Parameter) -> JsonObject:
    return {"name": parameter.name, "value": parameter.value, "mention": parameter.mention}
