"""Lifetime: for how long a plan may be served, given words whose meaning changes with the time."""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from semcache.binding.bindings import Binding
from semcache.binding.codecs import alike
from semcache.binding.generalize.leftovers import Unbound
from semcache.binding.generalize.values import Owned
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter

_DATE = re.compile(r"(?<!\d)(?:(?:19|20|21)\d\d(?:\d{4})?|1\d{9}(?:\d{3})?)(?!\d)")
_TIME = re.compile(r"(?<!\d)(?:\d{1,2}:\d\d|1\d{9}(?:\d{3})?)(?!\d)")
_SUB_DAY = re.compile(
    r"\b(?:now|moments?|seconds?|secs?|minutes?|mins?|hours?|hrs?)\b", re.IGNORECASE
)
# What SQL and the usual languages call the clock: a plan with one of these asks for the time when
# it runs, and froze nothing.
_CLOCK = re.compile(
    r"\b(?:now|today|current_(?:time|date|timestamp)|getdate|sysdate|curdate|curtime|utcnow|"
    r"local_?time(?:stamp)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """For how long a plan may be served."""

    refusal: str = ""
    """Why it must not be served again at all; empty if it may."""
    perishable: str = ""
    """The words that mean something else on another day; empty if none do."""


def lifetime(
    mentions: Sequence[Mention],
    owned: Owned,
    params: Sequence[Parameter],
    bindings: Sequence[Binding],
    unbound: Unbound,
    *,
    told: Container[str] = frozenset(),
) -> Lifetime:
    """Return for how long a plan may be served whose prompt says "yesterday" or the like.

    It lasts if it hands on the words themselves, or asks the clock, and nothing of it looks like
    what the words stood for when it was made. Where the words may stand for an instant and the plan
    has one, it is over at once. `told`: parameters whose values will be given by name, so that no
    words need be understood for them.
    """
    relative = [i for i, mention in enumerate(mentions) if mention.relative]
    if not relative:
        return Lifetime()
    values = {p.name: p for p in params}
    bound = {binding.param for binding in bindings}
    handed = {
        i
        for i in relative
        if unbound.says(mentions[i].text)
        or (
            owned.carriers[i] in bound
            and (owned.carriers[i] in told or _verbatim(values[owned.carriers[i]], mentions[i]))
        )
    }
    words = next(
        (mentions[i].text for i in relative if i not in handed), mentions[relative[0]].text
    )
    frozen = _Frozen.of(mentions, [p for p in params if p.name not in told], unbound)
    if frozen.time and any(_instant(mentions[i]) for i in relative if i not in handed):
        return Lifetime(
            refusal=f"{words!r} depends on when it is asked, and the plan has {frozen.time!r}"
        )
    lasts = not frozen.date and (
        frozen.clock or (len(handed) == len(relative) and not frozen.numbers)
    )
    return Lifetime(perishable="" if lasts else words)


def _verbatim(param: Parameter, mention: Mention) -> bool:
    return alike(param.value, mention.text)


def _instant(mention: Mention) -> bool:
    """Return whether words may stand for an instant; a bare number may be one of minutes."""
    return mention.text.isdigit() or bool(_SUB_DAY.search(mention.text))


@dataclass(frozen=True, slots=True)
class _Frozen:
    """What a plan has that its prompt does not say."""

    date: str
    time: str
    numbers: bool
    clock: bool

    @classmethod
    def of(
        cls,
        mentions: Sequence[Mention],
        params: Sequence[Parameter],
        unbound: Unbound,
    ) -> "_Frozen":
        told = " ".join(mention.text for mention in mentions if not mention.relative)
        carried = _carried(mentions, params)
        silent = [str(p.value) for p in params if p.name not in carried]
        texts = [*unbound.texts, *silent]
        return cls(
            date=_first(_DATE, texts, told),
            time=_first(_TIME, texts, told),
            numbers=bool(silent) or unbound.numbers,
            clock=any(_CLOCK.search(text) for text in unbound.texts),
        )


def _carried(mentions: Sequence[Mention], params: Sequence[Parameter]) -> set[str]:
    """Return the parameters whose value the prompt says in words that mean the same at any time."""
    fixed = {mention.text.casefold() for mention in mentions if not mention.relative}
    return {
        p.name
        for p in params
        if p.mention is not None and (p.mention.casefold() in fixed or alike(p.value, p.mention))
    }


def _first(pattern: re.Pattern[str], texts: Iterable[str], told: str) -> str:
    found = (match for text in texts for match in pattern.findall(text))
    return next((match for match in found if match not in told), "")
