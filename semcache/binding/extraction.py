"""Extraction: the parameters of a plan that came without any, read from the plan itself.

A value of the plan that its prompt says word for word is a parameter, by the name that the plan has
for it: of `{"to": "Ada", "amount": 250}` for "send 250 to Ada" both are. A plain word in small
letters is none: `{"mode": "delete"}` is what the prompt wants done, and not a value of it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from semcache.binding.codecs import number_text, spelling
from semcache.binding.generalize.values import COMMON, rarity
from semcache.binding.leaves import GENERIC, Leaf, survey
from semcache.canonical import Json, JsonObject
from semcache.plans.document import enclosed
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import Parameter, name_key

_NUMBER = r"(?<![\w.,-]){}(?![\w-]|[.,]\d)"
_WORDS = r"(?<![\w-]){}(?![\w-])"


def extract(plan: Json, prompt: str) -> tuple[Parameter, ...]:
    """Return a parameter for each value of `plan` that `prompt` says word for word.

    Of words within others' words only the longer count: neither the 1234 of an order `#1234` nor
    what stands in quotes is said by itself. A value that stands at several places of the plan is
    one parameter.
    """
    document = enclosed(plan)
    leaves = _telling(document) if isinstance(document, dict) else ()
    said = [(leaf, span) for leaf in leaves for span in _spans(leaf.value, prompt)]
    mentions = [(mention.start, mention.end) for mention in find_mentions(prompt)] if said else []
    said = [one for one in said if not any(_inside(one[1], mention) for mention in mentions)]
    taken: list[tuple[int, int]] = []
    found: dict[str, Parameter] = {}
    names: Counter[str] = Counter()
    for leaf, (start, end) in sorted(said, key=lambda one: one[1][0] - one[1][1]):
        key = spelling(leaf.value)
        if key in found or any(start < other[1] and other[0] < end for other in taken):
            continue
        taken += _spans(leaf.value, prompt)
        found[key] = Parameter(_name(leaf, names), leaf.value, mention=prompt[start:end])
    return tuple(found.values())


def _telling(document: JsonObject) -> Iterator[Leaf]:
    for leaf in survey(document):
        is_value = leaf.role == "data" and isinstance(leaf.value, str | int | float)
        if is_value and leaf.telling and leaf.rest is None and rarity(leaf.value) > COMMON:
            yield leaf


def _spans(value: Json, prompt: str) -> Sequence[tuple[int, int]]:
    """Return where `prompt` says a value; nowhere where its words may be plain ones."""
    words = number_text(value) if isinstance(value, int | float) else str(value)
    pattern = _NUMBER if words[:1].isdigit() and words[-1:].isdigit() else _WORDS
    found = [m.span() for m in re.finditer(pattern.format(re.escape(words)), prompt)]
    return [span for span in found if _is_value(words, prompt, span)]


def _inside(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span != other and other[0] <= span[0] and span[1] <= other[1]


def _is_value(words: str, prompt: str, span: tuple[int, int]) -> bool:
    # A capital at the beginning of a sentence says nothing.
    inner = words[1:] if not prompt[: span[0]].strip() else words
    return any(c.isdigit() or c.isupper() or c == "@" for c in inner)


def _name(leaf: Leaf, names: Counter[str]) -> str:
    name = next(name for name in leaf.names if name not in GENERIC)
    names[name_key(name)] += 1
    count = names[name_key(name)]
    return name if count == 1 else f"{name}{count}"
