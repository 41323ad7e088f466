"""Content: what of a template text must be the same for two prompts to share a plan.

Words that only dress a request (courtesy, articles, "show me", "what is") are left out, forms of
one word are folded, and what remains must be equal word for word and in order. Order matters: "the
population of the capital of the largest state" and "the capital of the state with the largest
population" have the same words.
"""

from collections.abc import Iterable, Sequence
from sys import intern
from typing import TypeAlias

from semcache.process.memo import memoized
from semcache.prompts.parameter import Parameter
from semcache.prompts.template import TemplateText
from semcache.prompts.tokens import is_sign, is_slot, tokens
from semcache.prompts.words import (
    ARTICLES,
    CLOSED_CLASS,
    COMPARISON,
    POLITENESS,
    REQUESTS,
    singular,
)

_DRESSING = (
    ARTICLES
    | POLITENESS
    | REQUESTS
    | frozenset("i me we us you your it what which and".split())
    | frozenset(
        "is are am be been being do does can could would will shall have has let lets".split()
    )
) - frozenset("and".split())
"""Words that may stand on one side only. `and` is not one of them: it joins conditions."""

_PAST = frozenset("was were did had".split())
"""All say "then"; they fold into one word that the other side must say too."""

_LOOSE = frozenset("of in on at for about".split())
"""Prepositions that say nothing beyond the noun that follows; before a value they say its role."""

_PLACE = {"in": "at", "on": "at", "at": "at"}
"""Before a value, `in`, `on` and `at` follow the noun's habit (in March, on Monday), no meaning."""

_FOLDS: dict[tuple[str, ...], str] = {
    ("how", "many"): "count",
    ("number", "of"): "count",
    ("count", "of"): "count",
    ("no", "less", "than"): "least",
    ("no", "fewer", "than"): "least",
    ("no", "more", "than"): "most",
    ("prior", "to"): "before",
    ("max",): "maximum",
    ("min",): "minimum",
    ("avg",): "average",
    **{(word, "than"): "over" for word in ("more", "greater", "higher", "larger", "bigger")},
    **{(word, "than"): "under" for word in ("less", "fewer", "lower", "smaller")},
    **{(*lead, low, "to", high): "ascending"
       for low, high in (("low", "high"), ("lowest", "highest"), ("smallest", "largest"))
       for lead in ((), ("from",))},
    **{(*lead, high, "to", low): "descending"
       for low, high in (("low", "high"), ("lowest", "highest"), ("smallest", "largest"))
       for lead in ((), ("from",))},
    **{(way, "order"): f"{way}ending" for way in ("asc", "desc")},
    **{(way, "order"): way for way in ("ascending", "descending")},
    ("increasing", "order"): "ascending",
    ("decreasing", "order"): "descending",
    ("asc",): "ascending",
    ("desc",): "descending",
    ("above",): "over",
    ("below",): "under",
}  # fmt: skip
"""Phrases that say the same thing, as a grammar book lists them → the one word that they become."""
_LONGEST = max(map(len, _FOLDS))

ADJUNCTS = frozenset("from to at via through before after since until till during for by".split())
"""Before a value, these make a phrase that may change places with the next one of its kind."""


_ASKING = frozenset(
    "is are am was were do does did has have had can could will would should may might must".split()
)
"""Verbs that, before their subject, ask for yes or no."""

_COURTEOUS = frozenset("you i we".split())
"""Subjects of "could you show me", "can I see", "do you have": these are requests."""

_LEAVE = frozenset("can could may might should must am are was were".split())
"""Verbs that, before "I" or "we", ask whether something may be done, is possible or is so."""
_HEAD = 6
"""Words among which a question is told from a request."""

POLAR = "<:polar>"
"""Stands at the head of a question that wants yes or no."""
PAST = "<:past>"
"""Stands for a verb that says "then"."""
FUTURE = "<:future>"
"""Stands for a verb that says "not yet"."""
MARKS = frozenset({POLAR, PAST, FUTURE})
"""What stands among content words for more than a word. No prompt can spell one: `<` is a token of
its own."""


def is_polar(words: Sequence[str]) -> bool:
    """Return whether the words ask for yes or no: "are all orders paid", not "list paid orders".

    Questions to or of the one who asks ("could you show me", "do you have", "can I see") are
    requests, but for their form; "can I cancel it" asks whether, and does not tell to.
    """
    said = [word for word in words[:_HEAD] if word not in POLITENESS]
    if len(said) < 2 or said[0] not in _ASKING:
        return False
    if said[1] not in _COURTEOUS:
        return True
    if said[1] == "you" or said[0] not in _LEAVE:
        return False
    return len(said) > 2 and said[2] not in REQUESTS and said[2] != "have"


@memoized(20_000)
def _numbers(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the nouns that a template text has in the singular alone, and in the plural alone."""
    said = {word: singular(word) for word in tokens(text) if word not in CLOSED_CLASS}
    plural = {base for word, base in said.items() if word != base}
    single = {base for word, base in said.items() if word == base}
    return frozenset(single - plural), frozenset(plural - single)


def other_numbers(text: str, other: str) -> tuple[str, ...]:
    """Return the nouns that one of two template texts has in the singular and one in the plural."""
    if text == other:
        return ()
    (single, plural), (its_single, its_plural) = _numbers(text), _numbers(other)
    if single.isdisjoint(its_plural) and plural.isdisjoint(its_single):
        return ()
    return tuple(sorted((single & its_plural) | (plural & its_single)))


def is_other_mood(text: str, other: str) -> bool:
    """Return whether one of two template texts asks whether, and the other tells to."""
    return text != other and is_polar(tokens(text)) != is_polar(tokens(other))


@memoized(20_000)
def content(text: str) -> tuple[str, ...]:
    """Return the words of a template text that matter, folded, in order.

    Phrases that stand side by side and each hold values ("from <city> to <city>", "on <date>") come
    in one order, whichever was said first.
    """
    words = tokens(text)
    kept: list[str] = [POLAR] if is_polar(words) else []
    begun = len(kept)
    i = 0
    while i < len(words):
        folded, after = _alone(words[i]), i + 1
        if folded is None:
            folded, after = _folded(words, i, leading=len(kept) == begun)
        if folded:
            kept.append(folded)
        i = after
    return tuple(_arranged(kept))


@memoized(10_000)
def _alone(word: str) -> str | None:
    """Return what stands for a word whatever is said around it; None if that matters."""
    if word in _FOLDING or word in _SHIFTY or word in _LOOSE:
        return None
    return intern(_kept(word, ""))  # thousands of templates have a few hundred words


def _folded(words: Sequence[str], at: int, *, leading: bool) -> tuple[str, int]:
    """Return what stands for the words at `at`, empty for nothing, and where the next begin.

    `leading`: nothing that matters was said before.
    """
    if words[at] in _FOLDING:
        for size in range(min(_LONGEST, len(words) - at), 0, -1):
            folded = _FOLDS.get(tuple(words[at : at + size]))
            if folded:
                return folded, at + size
    before = words[at - 1] if at else ""
    following = words[at + 1] if at + 1 < len(words) else ""
    if words[at] in _SHIFTY:
        return _shifty(words[at], before, following, leading=leading), at + 1
    return _kept(words[at], following), at + 1


_WILL = frozenset({"will", "shall", "may"})
_WISHING = frozenset("want wants wanted like love wish need needs".split())
_BEING = frozenset("is are am was were be been".split())
_ALSO_NOUNS = frozenset("list report view display show return present look print".split())
_WITH_UP = frozenset({"look", "pull", "bring"})
_SHIFTY = _WILL | _ALSO_NOUNS | {"there", "to", "need", "needs", "up"}
"""Words that dress a request or matter, as they stand."""


def _shifty(word: str, before: str, following: str, *, leading: bool) -> str:
    """Return what stands for a word that matters by its neighbors; empty for nothing."""
    match word:
        case "will" | "shall":  # "I will need", "will you show", but "parcels that will arrive"
            word, dresses = FUTURE, leading or following in _COURTEOUS
        case "may":  # "may I see"
            dresses = following in _COURTEOUS
        case "there":  # "there are", "are there", but "who works there"
            dresses = before in _BEING or following in _BEING
        case "to":  # "I want to see"
            dresses = leading and before in _WISHING
        case "up":  # "look up"
            dresses = before in _WITH_UP
        case "need" | "needs":  # "we need"
            dresses = leading and before in _COURTEOUS
        case _:  # "report the leaks", but "the leak report"
            dresses = not _is_noun(word, before, following)
    return "" if dresses else singular(word)


def _is_noun(word: str, before: str, following: str) -> bool:
    """Return whether a word that may be a verb that asks is a noun here, by its neighbors."""
    if following in ARTICLES or following in {"me", "us", "all"} or (word, following) == _LIST_OF:
        return False
    return before in ARTICLES or not (before in CLOSED_CLASS or is_slot(before) or not before)


_LIST_OF = ("list", "of")


_FOLDING = frozenset(phrase[0] for phrase in _FOLDS)


def _arranged(words: Sequence[str]) -> list[str]:
    """Return `words` with each run of phrases that hold values in one order.

    A run that leads ("in <year> the sales by state") comes last, as it is said more often.
    """
    arranged: list[str] = []
    run: list[list[str]] = []
    for word in _led(words):
        if word in ADJUNCTS:
            run.append([word])
        elif run and is_slot(word):
            run[-1].append(word)
        else:
            if run:
                arranged += _in_order(run)
                run = []
            arranged.append(word)
    return arranged + _in_order(run)


def _led(words: Sequence[str]) -> Sequence[str]:
    """Return `words` with the phrases that lead them, each with a value, at their end."""
    end = 0
    while end + 1 < len(words) and words[end] in ADJUNCTS and is_slot(words[end + 1]):
        end += 2
    rest = words[end:]
    # Behind a clause of its own a phrase would belong to that: "in <year> members who joined".
    if not rest or is_slot(rest[0]) or not _CLAUSES.isdisjoint(rest):
        return words
    return [*rest, *words[:end]]


_CLAUSES = frozenset("who whom whose when where while if unless because".split()) | {PAST, FUTURE}


def _in_order(run: list[list[str]]) -> list[str]:
    # A preposition with no value behind it belongs to what follows: nothing moves across it.
    phrases = sorted(run) if all(len(phrase) > 1 for phrase in run) else run
    return [word for phrase in phrases for word in phrase]


def _kept(word: str, following: str) -> str:
    if is_slot(word):
        return word
    if word in _LOOSE:
        return _PLACE.get(word, word) if is_slot(following) else ""
    if word in _DRESSING:
        return ""
    if is_sign(word):
        return word
    return PAST if word in _PAST else singular(word)


def embedded_text(template: TemplateText) -> str:
    """Return what is embedded of a template text: its content, or all of it if that is nothing.

    Courtesy and lead-ins move a sentence's vector about as much as a condition does ("please show
    me the sales by state" is at 0.92 of "sales by state"), so they are left out before comparing.
    That a question wants yes or no, or asks of what is to come, is left to what must be proven.
    """
    return " ".join(word for word in content(template.text) if word not in _UNSAID) or template.text


_UNSAID = frozenset({POLAR, FUTURE})

Signs: TypeAlias = tuple[tuple[str, str], ...]
"""Signs of a text, each with the content word behind it, empty at the end."""


@memoized(20_000)
def signs(text: str) -> Signs:
    """Return the signs of a template text in order, each with the content word that follows it.

    Two prompts share a plan only if these are equal: what a sign means, no vector says. Where it
    stands does not depend on the courtesy around it.
    """
    found: list[tuple[str, str]] = []
    following = ""
    for word in reversed(content(text)):
        if is_sign(word) and word not in MARKS:
            found.append((word, following))
        else:
            following = word
    return tuple(found)


def is_telling(template: TemplateText) -> bool:
    """Return whether a template's own words say what its slots hold.

    "What does <airline_code> mean" fits any code there is; only a template with two or more content
    words may teach a value that was never seen.
    """
    return telling_words(content(template.text)) >= TELLING


def telling_words(words: Iterable[str]) -> int:
    """Return how many of the content words of a template say what its slots hold."""
    return sum(
        not is_slot(word) and word not in CLOSED_CLASS and word not in MARKS for word in words
    )


TELLING = 2
"""Content words that a template needs before an unseen value is read from it."""


def unexplained_signs(text: str, params: Iterable[Parameter]) -> tuple[str, ...]:
    """Return the signs of a template text that stand in no value of `params`, sorted.

    A schema has its operators, so that comparing signs are explained, and says nothing of others.
    """
    said = [part for p in params for part in (p.mention, p.value) if isinstance(part, str)]
    explained = COMPARISON.union(*map(tokens, said))
    return tuple(sorted(sign for sign, _ in signs(text) if sign not in explained))
