"""Slot roles: which slot of a prompt plays the part of which slot of a candidate."""

from collections import Counter
from collections.abc import Sequence

from semcache.prompts.parameter import name_key
from semcache.prompts.template import Slot


def match_slots(candidate: Sequence[Slot], prompt: Sequence[Slot]) -> tuple[int, ...] | None:
    """Return, for each slot of `candidate`, the position of the slot of `prompt` in its role.

    Slots of one kind are told apart by the names that the caller gave, else by the word to their
    left (from, to), else by their order. None where kinds do not pair off, where the words to the
    left have nothing in common, or where they contradict the order and more than one slot is left;
    nor where names of two kinds stand behind one another's words: which kind a name is of follows
    from where it was seen first, and a sender may be written to.
    """
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
