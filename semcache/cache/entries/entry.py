"""An entry: a plan template, what it was made from, and when it may be served."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from semcache.binding.bind import bind
from semcache.binding.codecs import Wording
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json, JsonObject, digest, dumps, leaves, loads, spelled
from semcache.errors import BindingError, InvalidInput, InvalidPlan, StoreCorrupt
from semcache.matching.gates import PinnedWords, Side, words_and_value
from semcache.plans.codec import adopt
from semcache.ports import Record, Vector
from semcache.prompts.parameter import Parameter, name_key, type_key
from semcache.prompts.redaction import is_stand_in
from semcache.prompts.template import Slot, TemplateText

if TYPE_CHECKING:
    from semcache.cache.entries.entry_schema import TemplateTextDoc


@dataclass(frozen=True, slots=True)
class SlotExtraction:
    """How the words in one slot become the value of the parameter that the slot carries."""

    name: str
    """Name of the parameter."""
    key: str
    """The name, free of spelling."""
    type: str
    """Slot type that the name stands for."""
    named: bool
    """Whether the parameter came with the plan; else it was read from the prompt."""
    how: Wording
    source: str
    """The words of the prompt that the plan was made for."""
    value: Json
    """The value that those words had."""


@dataclass(frozen=True, slots=True)
class EntryExtraction:
    """How an entry gets its values from another prompt."""

    slots: tuple[SlotExtraction, ...]
    """One for each slot of the template text, in order."""
    names: Mapping[str, str]
    """Name of a parameter, free of spelling → the name as the plan has it."""
    unsaid: Mapping[str, Json]
    """Parameters that no slot carries and that follow no other → their stored values."""

    @classmethod
    def of(
        cls, plan: PlanTemplate, named: Collection[str], wordings: Mapping[str, Wording]
    ) -> "EntryExtraction":
        """Return the reading of an entry of these parts."""
        params = {p.name: p for p in plan.params}
        elsewhere = {*plan.carriers, *plan.follows}
        return cls(
            slots=tuple(
                SlotExtraction(
                    name=name,
                    key=name_key(name),
                    type=type_key(name),
                    named=name in named,
                    how=wordings[name],
                    source=params[name].mention or "",
                    value=params[name].value,
                )
                for name in plan.carriers
            ),
            names={name_key(name): name for name in params},
            unsaid={n: p.value for n, p in params.items() if n not in elsewhere},
        )


FORMAT = 2
"""Version of the JSON of an entry; a reader refuses others."""
_OF_PARTS = frozenset({"echo", "shape"})
"""Pins that other words than the source's may satisfy."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the cache keeps of one planned prompt."""

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
    _side: Side | None = field(default=None, init=False, repr=False, compare=False)
    _reading: EntryExtraction | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def id(self) -> str:
        """Hex digest of what tells entries apart: template text, fixed values, fingerprints."""
        fixed: list[Json] = [[p.param, list(p.path), p.value] for p in self.plan.pinned]
        names: list[Json] = [*sorted(name_key(name) for name in self.named)]
        identity: Json = [self.template.text, fixed, names, self.catalog, self.grounding]
        return digest(identity)[:32]

    @property
    def fixed_slots(self) -> tuple[int, ...]:
        """Positions of the slots whose words must stay what they were."""
        pinned = {pin.param for pin in self.plan.pinned}
        return tuple(i for i, name in enumerate(self.plan.carriers) if name in pinned)

    @property
    def label(self) -> str:
        """The readable key: the Prompt Schema Key, else the template text."""
        return self.key or self.template.text

    @property
    def side(self) -> Side:
        """The entry's side of a pair; made once."""
        side = self._side
        if side is None:
            names = frozenset(name_key(name) for name in self.named)
            side = Side(self.template, names, self.catalog, self.grounding, held=self._held())
            object.__setattr__(self, "_side", side)
        return side

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

    @property
    def given(self) -> TemplateText:
        """The template text as callers see it that give the values."""
        return self.template if self.without_given is None else self.without_given

    @property
    def reading(self) -> EntryExtraction:
        """How it gets its values from another prompt; made once."""
        reading = self._reading
        if reading is None:
            reading = EntryExtraction.of(self.plan, self.named, self.wordings)
            object.__setattr__(self, "_reading", reading)
        return reading

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


def expired(kept: Entry | Record, now_s: float) -> bool:
    """Return whether the time that an entry had is over.

    One that will be made later than now, by as long as it has, is over too: a clock was set back
    since, and nobody can tell how old it is.
    """
    end = kept.expires_s
    return end is not None and not 2 * kept.created_s - end < now_s < end


def template_key(template: TemplateText, fixed: Sequence[int] = ()) -> str:
    """Return the exact key of a template text whose slots at `fixed` keep their words.

    Those words are part of the key: a template that pins its order number has one entry an order,
    and a lookup must not try them all.
    """
    if not fixed:
        return f"template:{template.digest}"
    words: list[Json] = [template.slots[i].mention_text.casefold() for i in fixed]
    return f"template:{template.digest}:{digest([[*fixed], words])[:16]}"


def from_record(record: Record) -> Entry:
    """Return the entry that a record holds.

    Raises:
        StoreCorrupt: the body is not an entry of a version that we know.
    """
    what = f"entry {record.id!r}"
    try:
        return from_json(record.tenant, loads(record.body, what=what), what=what)
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
    return Entry(
        tenant=tenant,
        prompt=doc["prompt"],
        template=_template(doc["template"]),
        plan=PlanTemplate.of(doc["plan"]),
        named=tuple(doc["named"]),
        wordings=doc["wordings"],
        key=doc["key"],
        schema=doc["schema"],
        catalog=doc["catalog"],
        operations=tuple(doc["operations"]),
        writes=doc["writes"],
        grounding=doc["grounding"],
        tags=tuple(doc["tags"]),
        planner=doc["planner"],
        created_s=doc["created_s"],
        expires_s=doc["expires_s"],
        fades_s=doc["fades_s"],
        without_given=None if doc["given"] is None else _template(doc["given"]),
        cost_s=doc["cost_s"],
        examples=tuple(tuple(Parameter(**p) for p in group) for group in doc["examples"]),
    )


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
