"""Habits: what stands around and inside the slots of a tenant's templates, as counts.

They are what tells whether words that nobody used before are a value, and of which type: the words
beside the slots of that type, and how its known values look (capitals, digits, length, how often a
new one comes).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from semcache.process.forks import Lock
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter, type_key
from semcache.prompts.template import TemplateText, slot_name
from semcache.prompts.unseen.word_shapes import Shape, ShapedWord, token_list

T = TypeVar("T")

START, END = "^^", "$$"
"""Stand for the edges of a text among the tokens beside a slot; no token has two signs."""

_IN_TEMPLATE = re.compile(r"<[\w.]+>|\w+|[^\w\s]")
_USUAL: dict[Shape, float] = {
    "capital": 0.5, "upper": 0.1, "lower": 0.2, "digit": 0.03, "sign": 0.05, "closed": 0.07,
    "title": 0.05,
}  # fmt: skip
"""How values look before any was seen; they weigh as `_FIRST` tokens."""
_FIRST = 6.0
_MIXED = ({"capital", "lower"}, {"title", "lower"}, {"upper", "lower"})
_RARELY = 0.1
"""Times as often as other shapes, these stand beside one another in a value, as far as is known."""
_NONE: Counter[Shape] = Counter()
_BACKOFF = 4.0
"""Tokens that what is known of all types weighs against what is known of one."""
_NEW_BESIDE = 3.0
"""Tokens that how common a word is weighs against how often it follows another."""
_ENOUGH = 5
"""Values in lower case after which the next one looks so in six of seven cases (Laplace's rule)."""
_UNSEEN = 50.0
"""Tokens that stand for what no template has shown yet."""


class Kind(NamedTuple):
    """What is known of the values of one slot type."""

    looks: Counter[Shape]
    words: Counter[str]
    values: Counter[str]
    """Folded value → templates that have it there."""

    @property
    def uses(self) -> int:
        """Slots of this type."""
        return self.values.total()

    @property
    def share_new(self) -> float:
        """How often the next value is one never seen: those seen once, by Good and Turing."""
        once = sum(count == 1 for count in self.values.values())
        return (once + 0.5) / (self.uses + 1)


MAX_TEMPLATES = 2000
"""Templates that are counted: those that came last."""
LONGEST = 2000
"""Characters that a template which is counted may have: a longer one is a text, whose words say
little of slots, and counting takes ten microseconds a character."""
MAX_CHARS = 400_000
"""Characters of all templates that are counted at once."""


class Habits:
    """Counts over the latest templates. Safe to change from any thread; read under `lock`."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._counted: dict[str, tuple[TemplateText, tuple[Parameter, ...]]] = {}
        self.kinds: dict[str, Kind] = {}
        """`<kind>` → what is known of its values."""
        self._patterns: dict[str, dict[tuple[Shape, ...], Counter[str]]] = {}
        """`<kind>` → the shapes of the words of a value, signs apart → the values that look so."""
        self._after: dict[str, Counter[str]] = {}
        self._lefts: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._total = 0
        self._once = 0
        self._looks: Counter[Shape] = Counter()
        self._follows: dict[Shape, Counter[Shape]] = {}

    def add(
        self,
        id: str,  # noqa: A002 - the word of the record
        template: TemplateText,
        examples: Iterable[Parameter] = (),
    ) -> None:
        """Count `template` under `id`, in the place of what was there.

        `examples`: the values that prompts of this template came with, whose looks count too.
        """
        with self.lock:
            self.remove(id)
            if len(template.text) > LONGEST:
                return
            if len(self._counted) >= MAX_TEMPLATES:
                self.remove(next(iter(self._counted)))
            self._counted[id] = template, tuple(examples)
            self._count(*self._counted[id], 1)

    def remove(self, id: str) -> None:  # noqa: A002 - the word of the record
        """Count what is under `id` no longer; an unknown id is fine."""
        with self.lock:
            counted = self._counted.pop(id, None)
            if counted is not None:
                self._count(*counted, -1)

    def _count(self, template: TemplateText, examples: Sequence[Parameter], by: int) -> None:
        tokens = [START, *_IN_TEMPLATE.findall(template.text), END]
        for left, right in pairwise(tokens):
            after = self._after.setdefault(left, Counter())
            _add(after, right, by)
            _add(self._lefts, left, by)
            if not after:
                del self._after[left]
            self._recount(right, by)
        for slot in template.slots:
            value = token_list(slot.mention_text)
            self._count_value(f"<{slot.kind}>", value, by)
            self._count_look(f"<{slot.kind}>", value, by)
        for parameter in examples:
            if parameter.mention is not None:
                kind = f"<{slot_name(type_key(parameter.name))}>"
                self._count_look(kind, token_list(parameter.mention), by)

    def _recount(self, token: str, by: int) -> None:
        before = self._tokens[token]
        _add(self._tokens, token, by)
        self._total += by
        self._once += (before + by == 1) - (before == 1)

    def _count_value(self, kind: str, tokens: Sequence[ShapedWord], by: int) -> None:
        known = self.kinds.get(kind)
        if known is None:
            known = self.kinds[kind] = Kind(Counter(), Counter(), Counter())
        value = " ".join(token.word for token in tokens)
        _add(known.values, value, by)
        for at, token in enumerate(tokens):
            _add(known.looks, token.shape, by)
            _add(known.words, token.word, by)
            self._looks[token.shape] += by
            if at:
                self._follows.setdefault(tokens[at - 1].shape, Counter())[token.shape] += by
        if not known.values:
            del self.kinds[kind]

    def _count_look(self, kind: str, tokens: Sequence[ShapedWord], by: int) -> None:
        patterns = self._patterns.setdefault(kind, {})
        alike = patterns.setdefault(pattern(tokens), Counter())
        _add(alike, " ".join(token.word for token in tokens), by)
        if not alike:
            del patterns[pattern(tokens)]
        if not patterns:
            del self._patterns[kind]

    @property
    def size(self) -> int:
        """How many words and signs the templates use, slots included."""
        return len(self._tokens)

    # Asking --------------------------------------------------------------------------------

    def uses(self, word: str) -> int:
        """Return how often templates have `word` outside of slots."""
        return self._tokens.get(word, 0)

    def follows(self, token: str, left: str) -> float:
        """Return how probable `token`, a word or slot that templates have, is behind `left`."""
        common = (self._tokens.get(token, 0) + (0.3 if token[0] == "<" else 0.0)) / (
            self._total + _UNSEEN
        )
        return self._beside(left, token, common)

    def follows_new(self, left: str) -> float:
        """Return how probable any word that no template has is behind `left`."""
        return self._beside(left, "", (self._once + 5) / (self._total + _UNSEEN))

    def _beside(self, left: str, token: str, common: float) -> float:
        after = self._after.get(left)
        if not after:
            return common
        return (after.get(token, 0) + _NEW_BESIDE * common) / (self._lefts[left] + _NEW_BESIDE)

    def fit(self, text: str, mentions: Sequence[Mention]) -> bool:
        """Return whether the aligned ones of `mentions` look like known values of their types.

        Their words have the shapes, one by one, of a value that templates have in such a slot. A
        name is told by its capitals; words in lower case could be a clause as well, so that only a
        single one is taken, and where several values looked so.
        """
        aligned = [mention for mention in mentions if mention.source == "aligned"]
        if not aligned:
            return True
        careless = _capitals_say_nothing(text, mentions)
        with self.lock:
            return all(self._fits(mention, careless=careless) for mention in aligned)

    def _fits(self, mention: Mention, *, careless: bool) -> bool:
        shapes = pattern(token_list(mention.text))
        alike = len(self._patterns.get(f"<{slot_name(mention.kind)}>", {}).get(shapes, ()))
        if careless or "lower" in shapes:
            return len(shapes) == 1 and alike >= _ENOUGH
        return alike > 0

    def looks(self, kind: Kind, shape: Shape, left: Shape | None) -> float:
        """Return how probable `shape` is in a value of `kind`, behind a token of shape `left`."""
        usual = (self._looks[shape] + _FIRST * _USUAL[shape]) / (self._looks.total() + _FIRST)
        own = (kind.looks[shape] + _BACKOFF * usual) / (kind.looks.total() + _BACKOFF)
        if left is None:
            return own
        behind = self._follows.get(left, _NONE)
        if {left, shape} in _MIXED:
            own *= _RARELY
        return (behind[shape] + _BACKOFF * own) / (behind.total() + _BACKOFF)


def pattern(tokens: Sequence[ShapedWord]) -> tuple[Shape, ...]:
    """Return the shapes of the words among `tokens`."""
    return tuple(token.shape for token in tokens if token.shape != "sign")


def _capitals_say_nothing(text: str, mentions: Sequence[Mention]) -> bool:
    """Return whether most words beside the mentions have a capital, as in a headline."""
    around = [0, *(at for mention in mentions for at in (mention.start, mention.end)), len(text)]
    tokens = [token for at in range(0, len(around), 2)
              for token in token_list(text, around[at], around[at + 1])]  # fmt: skip
    inside = [token.shape for token in tokens[1:] if token.shape not in {"sign", "digit"}]
    capitals = sum(shape in {"capital", "upper", "title"} for shape in inside)
    return 2 * capitals > len(inside)


def _add(counts: Counter[T], key: T, by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
