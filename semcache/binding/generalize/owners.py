"""Owners: which parameter each mention of a prompt carries."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter, name_key


@dataclass(frozen=True, slots=True)
class Owned:
    """The mentions of a prompt, told apart by what they carry."""

    carriers: tuple[str, ...]
    """For each mention, in order, the parameter it carries: a given one, or its own (`number1`)."""
    own: Mapping[str, Mention]
    """Mentions that belong to no given parameter, by the name they get."""
    by_param: Mapping[str, Mention]
    """Given parameter → the first mention that carries it."""


def owners(mentions: Sequence[Mention], params: Sequence[Parameter]) -> Owned:
    """Return which parameter each of `mentions` carries.

    A mention that belongs to none gets a name of its own: its kind and a number, `date1` for the
    first date of the prompt that no parameter has.
    """
    by_key = {name_key(p.name): p.name for p in params}
    claimed: dict[str, Mention] = {}
    carriers: list[str | None] = [_given(mention, by_key, claimed) for mention in mentions]
    spoken: dict[str, list[str]] = defaultdict(list)
    for param in params:
        if param.mention and param.name not in claimed:
            spoken[param.mention.casefold()].append(param.name)
    for i, mention in enumerate(mentions):
        waiting = spoken[mention.text.casefold()] if carriers[i] is None else []
        if waiting:
            carriers[i] = waiting.pop(0)
            claimed[str(carriers[i])] = mention
    own = _own(mentions, carriers, set(by_key))
    return Owned(tuple(map(str, carriers)), own, claimed)


def _given(mention: Mention, by_key: Mapping[str, str], claimed: dict[str, Mention]) -> str | None:
    name = by_key.get(name_key(mention.name)) if mention.name else None
    if name is None or mention.source != "given":
        return None
    claimed.setdefault(name, mention)
    return name


def _own(
    mentions: Sequence[Mention], carriers: list[str | None], taken: set[str]
) -> dict[str, Mention]:
    own: dict[str, Mention] = {}
    seen: Counter[str] = Counter()
    for i, mention in enumerate(mentions):
        if carriers[i] is not None:
            continue
        name = _free(mention.kind, seen, taken)
        carriers[i] = name
        own[name] = mention
    return own


def _free(kind: str, seen: Counter[str], taken: set[str]) -> str:
    while True:
        seen[kind] += 1
        name = f"{kind}{seen[kind]}"
        if name_key(name) not in taken:
            taken.add(name_key(name))
            return name
