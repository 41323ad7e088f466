"""Gates: checks that a candidate must pass for a prompt; each answers with a verdict and a reason.

A gate is a callable from a pair to a verdict. Gates compose with `+`: all must pass, asked in
order, cheap ones first. At the end, which slot of a prompt plays the part of which slot of a
candidate that passed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from semcache.matching.given_slots import own_agree, without_slots
from semcache.matching.words.content import signs
from semcache.process.memo import memoized
from semcache.prompts.parameter import name_key
from semcache.prompts.template import Slot, TemplateText


class PinnedWords(NamedTuple):
    """Words of an entry's prompt that its plan holds on to, case aside."""

    words: str
    value: str
    """The value that they carried, as text."""
    unless_given: bool = False
    """Whether they need not be said where the caller gives the values."""


def words_and_value(slot: Slot) -> tuple[str, str]:
    """Return the words in a slot and the value that they carry, as two prompts are compared."""
    return " ".join(slot.mention_text.casefold().split()), str(slot.value).casefold()


class Side(NamedTuple):  # as `CandidatePair`
    """What one side of a pair brings."""

    template: TemplateText
    """Template text and slots."""
    names: frozenset[str]
    """Spelling-free names of the parameters that the caller gives, or that the entry needs."""
    catalog: str = ""
    """Fingerprint of the catalog in force; empty without one."""
    grounding: str = ""
    """Which grounding is in force; empty for none."""
    said: frozenset[str] = frozenset()
    """Of a prompt: the words of the mentions that nobody gave, and their values, case aside."""
    held: tuple[PinnedWords, ...] = ()
    """Of an entry: what it was made for that a prompt must say too."""


class CandidatePair(NamedTuple):  # made for every candidate: half the time of a frozen dataclass
    """A prompt and a candidate for it."""

    query: Side
    candidate: Side
    score: float
    """Cosine of the template texts, in [-1, 1]; higher is nearer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of a pair."""

    gate: str
    passed: bool
    reason: str = ""
    """Why not; empty if it passed."""


Gate: TypeAlias = Callable[[CandidatePair], Verdict]
"""Asks one thing of a pair. Pure."""


@dataclass(frozen=True, slots=True)
class Gates:
    """Gates asked in order until one refuses."""

    gates: tuple[Gate, ...]

    def __add__(self, other: Gate) -> "Gates":
        return Gates((*self.gates, other))

    def __call__(self, pair: CandidatePair) -> tuple[Verdict, ...]:
        """Return the verdicts up to and with the first refusal."""
        verdicts: list[Verdict] = []
        for gate in self.gates:
            verdicts.append(gate(pair))
            if not verdicts[-1].passed:
                break
        return tuple(verdicts)

    def admit(self, pair: CandidatePair) -> bool:
        """Return whether all gates pass."""
        for gate in self.gates:  # noqa: SIM110 - `all` of a generator takes half as long again
            if not gate(pair).passed:
                return False
        return True


STRICT = 0.95
"""The cosine of all-MiniLM-L6-v2 at which the units of other embedders meet its own."""


def likeness(cosine: float, strict: float) -> float:
    """Return a cosine of an embedder in the unit of all-MiniLM-L6-v2, in which thresholds are told.

    `strict`: cosine in (0, 1) of the embedder over which nearest prompts have the same plan as
    often as over 0.95 of all-MiniLM-L6-v2.
    """
    if strict == STRICT:
        return cosine
    if cosine <= strict:
        return cosine * STRICT / strict
    return STRICT + (cosine - strict) * (1 - STRICT) / (1 - strict)


def threshold(above: float) -> Gate:
    """Return a gate that wants a cosine strictly over `above`, in [-1, 1]."""

    def gate(pair: CandidatePair) -> Verdict:
        return over(pair.score, above)

    return gate


_OVER = Verdict("threshold", passed=True)


def over(score: float, above: float) -> Verdict:
    """Return whether a cosine is strictly over `above`."""
    if score > above:
        return _OVER
    return Verdict("threshold", passed=False, reason=f"{score:.4f} <= {above:g}")


# Made once: most verdicts are these, and every hit collects a handful.
_SAME_CATALOG = Verdict("catalog", passed=True)
_SAME_GROUNDING = Verdict("grounding", passed=True)
_SAME_PARAMETERS = Verdict("parameters", passed=True)
_SAME_SLOTS = Verdict("slots", passed=True)
_SAME_SIGNS = Verdict("signs", passed=True)
_SAME_HELD = Verdict("pinned", passed=True)


def catalog(pair: CandidatePair) -> Verdict:
    """Pass if both sides see the same catalog (orra: services hash)."""
    if pair.query.catalog == pair.candidate.catalog:
        return _SAME_CATALOG
    return Verdict("catalog", passed=False, reason="the operations changed since it was stored")


def grounding(pair: CandidatePair) -> Verdict:
    """Pass if both sides have the same grounding."""
    mine, its = pair.query.grounding, pair.candidate.grounding
    if mine == its:
        return _SAME_GROUNDING
    return Verdict("grounding", passed=False, reason=f"{mine!r} is not {its!r}")


def parameters(pair: CandidatePair) -> Verdict:
    """Pass if the caller gives no parameters, or exactly those that the candidate depends on."""
    given, wanted = pair.query.names, pair.candidate.names
    if not given or given == wanted:
        return _SAME_PARAMETERS
    return _other_parameters(given, wanted)


# What refuses most neighbors is one of a few: their words are put together once.
@memoized(2_000)
def _other_parameters(given: frozenset[str], wanted: frozenset[str]) -> Verdict:
    return Verdict("parameters", passed=False, reason=_sets(given - wanted, wanted - given))


def _sets(extra: frozenset[str], missing: frozenset[str]) -> str:
    parts = [f"given but not used: {', '.join(sorted(extra))}"] if extra else []
    parts += [f"used but not given: {', '.join(sorted(missing))}"] if missing else []
    return "; ".join(parts)


def slots(pair: CandidatePair) -> Verdict:
    """Pass if both templates have the same slot types, each as often.

    Where the caller gives the values, those are no matter; what else was found is. A value whose
    words one side does not know may be one of the other side's own kind there.
    """
    mine, its = pair.query.template.signature, pair.candidate.template.signature
    if pair.query.names:
        if own_agree(pair.query.template, pair.candidate.template):
            return _SAME_SLOTS
    elif mine == its:
        return _SAME_SLOTS
    return _other_slots(mine, its)


@memoized(2_000)
def _other_slots(mine: tuple[str, ...], its: tuple[str, ...]) -> Verdict:
    return Verdict("slots", passed=False, reason=f"{_list(mine)} against {_list(its)}")


def same_signs(pair: CandidatePair) -> Verdict:
    """Pass if both sides have the same signs, in the same order before the same words."""
    mine, its = signs(pair.query.template.text), signs(pair.candidate.template.text)
    if mine == its:
        return _SAME_SIGNS
    return compare_signs(tuple(sign for sign, _ in mine), tuple(sign for sign, _ in its))


@memoized(2_000)
def compare_signs(mine: tuple[str, ...], its: tuple[str, ...]) -> Verdict:
    """Return the verdict on signs; where they are the same, they stand before other words."""
    said, other = (", ".join(map(repr, each)) or "none" for each in (mine, its))
    reason = f"{said} against {other}" if mine != its else f"{said} in another place"
    return Verdict("signs", passed=False, reason=reason)


def held(pair: CandidatePair) -> Verdict:
    """Pass if the prompt says what the candidate's plan holds on to.

    Binding would refuse it too; here it does not crowd out those that can be bound, nor count
    against them.
    """
    said, given = pair.query.said, bool(pair.query.names)
    for words, value, unless_given in pair.candidate.held:
        if not (given and unless_given) and words not in said and value not in said:
            reason = f"the plan was made for {words!r}, which is not said here"
            return Verdict("pinned", passed=False, reason=reason)
    return _SAME_HELD


def common(pair: CandidatePair) -> CandidatePair:
    """Return `pair` without the slots of given values whose words only one side knows."""
    query, candidate = pair.query, pair.candidate
    if not query.names:
        return pair
    mine = {name_key(slot.name) for slot in query.template.slots if slot.name}
    its = {name_key(slot.name) for slot in candidate.template.slots if slot.name}
    if mine == its:
        return pair
    return CandidatePair(
        query._replace(template=without_slots(query.template, mine - its)),
        candidate._replace(template=without_slots(candidate.template, its - mine)),
        pair.score,
    )


def _list(kinds: Iterable[str]) -> str:
    return " ".join(f"<{kind}>" for kind in kinds) or "none"


def risk_gates() -> Gates:
    """Return the gates that a candidate must pass whatever its risk is; see `gate_key`."""
    return Gates((catalog, grounding, parameters, slots, same_signs, held))


def choice_gates() -> Gates:
    """Return the gates that a plan must pass before a model may choose it.

    Slots may differ: the model reads both prompts, and binding sees to it that each value of the
    prompt goes somewhere.
    """
    return Gates((catalog, grounding, parameters, same_signs, held))


def gate_key(candidate: Side) -> tuple[object, ...]:
    """Return what `risk_gates` look at in a candidate for a prompt that comes without values.

    Of candidates with equal keys one is asked about, and its verdicts hold for all.
    """
    template = candidate.template
    exact = template.signature, signs(template.text), candidate.held
    return candidate.catalog, candidate.grounding, *exact


def exact_gates() -> Gates:
    """Return the gates of a hit whose template text or schema is equal."""
    return Gates((catalog, grounding, parameters))


_NO_TEMPLATE = TemplateText("", ())
Prints: TypeAlias = tuple[str, str]
"""Fingerprint of a catalog, and a grounding."""


# A tenant's entries have a few fingerprints and names among them: most hits ask the same again.
@memoized(2_000)
def exact_verdicts(
    names: frozenset[str], prints: Prints, wanted: frozenset[str], its: Prints
) -> tuple[Verdict, ...]:
    """Return the verdicts of `exact_gates`.

    `names` and `prints` are those of the prompt, `wanted` and `its` the candidate's.
    """
    query, candidate = Side(_NO_TEMPLATE, names, *prints), Side(_NO_TEMPLATE, wanted, *its)
    return exact_gates()(CandidatePair(query, candidate, 1.0))


def match_slots(candidate: Sequence[Slot], prompt: Sequence[Slot]) -> tuple[int, ...] | None:
    """Return, for each slot of `candidate`, the position of the slot of `prompt` in its role.

    Slots of one kind are told apart by the names that the caller gave, else by the word to their
    left (from, to), else by their order. None where kinds do not pair off, where the words to the
    left have nothing in common, or where they contradict the order and more than one slot is left;
    nor where names of two kinds stand behind one another's words: which kind a name is of follows
    from where it was seen first, and a sender may be written to.
    """
    if _stand_alike(candidate, prompt):
        return tuple(range(len(candidate)))
    if Counter(s.kind for s in candidate) != Counter(s.kind for s in prompt):
        return None
    roles = [-1] * len(candidate)
    for kind in {slot.kind for slot in candidate}:
        mine = [i for i, slot in enumerate(candidate) if slot.kind == kind]
        its = [i for i, slot in enumerate(prompt) if slot.kind == kind]
        pairs = _paired([candidate[i] for i in mine], [prompt[i] for i in its])
        if pairs is None:
            return None
        for at, role in enumerate(pairs):
            roles[mine[at]] = its[role]
    return None if _crossed(candidate, [prompt[role] for role in roles]) else tuple(roles)


def _stand_alike(candidate: Sequence[Slot], prompt: Sequence[Slot]) -> bool:
    """Return whether slots of the same kinds stand behind the same words, and none has a name."""
    places = [(slot.kind, slot.before) for slot in candidate]
    if places != [(slot.kind, slot.before) for slot in prompt]:
        return False
    return not any(slot.name for slot in prompt)


def _crossed(mine: Sequence[Slot], its: Sequence[Slot]) -> bool:
    """Return whether a name stands behind the word that names of another kind stand behind.

    `its`: the slots of the prompt in the roles of `mine`. Names that the caller gave are not asked.
    """
    pairs = [(a, b) for a, b in zip(mine, its, strict=True) if _is_name(a) and _is_name(b)]
    other = [
        (a, b)
        for a, b in pairs
        if a.before != b.before and not (b.name and name_key(a.name) == name_key(b.name))
    ]
    return any(
        a.kind != c.kind
        and ((b.before and b.before == c.before) or (a.before and a.before == d.before))
        for a, b in other
        for c, d in pairs
    )


def _is_name(slot: Slot) -> bool:
    if slot.relative or slot.kind == "quoted" or not isinstance(slot.value, str):
        return False
    return not any(map(str.isdigit, slot.mention_text))


def _paired(mine: Sequence[Slot], its: Sequence[Slot]) -> list[int] | None:
    if len(mine) == 1:
        return [0]
    by_name = _by_name(mine, its)
    return by_name if by_name is not None else _by_left_word(mine, its)


def _by_name(mine: Sequence[Slot], its: Sequence[Slot]) -> list[int] | None:
    names, others = [name_key(s.name) for s in mine], [name_key(s.name) for s in its]
    if not all(others) or len(set(names)) < len(names) or set(names) != set(others):
        return None
    return [others.index(name) for name in names]


def _by_left_word(mine: Sequence[Slot], its: Sequence[Slot]) -> list[int] | None:
    words, others = [s.before for s in mine], [s.before for s in its]
    if words == others:
        return [*range(len(words))]
    telling = [w for w in words if w and words.count(w) == 1 and others.count(w) == 1]
    roles = [others.index(w) if w in telling else -1 for w in words]
    rest = [i for i in range(len(others)) if i not in roles]
    if not telling and all(words) and all(others):
        return None  # "1 room with 3 stars" and "3 stars and 1 room": order alone tells nothing
    in_order = all(role in {-1, at} for at, role in enumerate(roles))
    if len(rest) > 1 and not in_order:
        return None
    # "via Reno" has a role that the second of "Tacoma Washington" has not.
    bare = [at for at in rest if at and not others[at]]
    if bare and any(role < 0 and word for role, word in zip(roles, words, strict=True)):
        return None
    return [rest.pop(0) if role < 0 else role for role in roles]
