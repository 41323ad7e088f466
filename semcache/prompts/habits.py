"""Habits: what stands around and inside the slots of a tenant's templates, as counts.

They are what tells whether words that nobody used before are a value, and of which type: the words
beside the slots of that type, and how its known values look (capitals, digits, length, how often a
new one comes).
"""

import re
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from semcache.prompts.shapes import Shape, Token, token_list
from semcache.prompts.template import TemplateText

T = TypeVar("T")

START, END = "^", "$"
"""Stand for the edges of a text among the tokens beside a slot."""

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


class Habits:
    """Counts over the latest templates. Safe to change from any thread; read under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._counted: dict[str, TemplateText] = {}
        self.kinds: dict[str, Kind] = {}
        """`<kind>` → what is known of its values."""
        self._after: dict[str, Counter[str]] = {}
        self._lefts: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._total = 0
        self._once = 0
        self._looks: Counter[Shape] = Counter()
        self._follows: dict[Shape, Counter[Shape]] = {}

    def add(self, id: str, template: TemplateText) -> None:  # noqa: A002 - the word of the record
        """Count `template` under `id`, in the place of what was there."""
        with self.lock:
            self.remove(id)
            if len(self._counted) >= MAX_TEMPLATES:
                self.remove(next(iter(self._counted)))
            self._counted[id] = template
            self._count(template, 1)

    def remove(self, id: str) -> None:  # noqa: A002 - the word of the record
        """Count what is under `id` no longer; an unknown id is fine."""
        with self.lock:
            template = self._counted.pop(id, None)
            if template is not None:
                self._count(template, -1)

    def _count(self, template: TemplateText, by: int) -> None:
        tokens = [START, *_IN_TEMPLATE.findall(template.text), END]
        for left, right in pairwise(tokens):
            after = self._after.setdefault(left, Counter())
            _add(after, right, by)
            _add(self._lefts, left, by)
            if not after:
                del self._after[left]
            self._recount(right, by)
        for slot in template.slots:
            self._count_value(f"<{slot.kind}>", token_list(slot.mention_text), by)

    def _recount(self, token: str, by: int) -> None:
        before = self._tokens[token]
        _add(self._tokens, token, by)
        self._total += by
        self._once += (before + by == 1) - (before == 1)

    def _count_value(self, kind: str, tokens: Sequence[Token], by: int) -> None:
        known = self.kinds.get(kind)
        if known is None:
            known = self.kinds[kind] = Kind(Counter(), Counter(), Counter())
        _add(known.values, " ".join(token.word for token in tokens), by)
        for at, token in enumerate(tokens):
            _add(known.looks, token.shape, by)
            _add(known.words, token.word, by)
            self._looks[token.shape] += by
            if at:
                self._follows.setdefault(tokens[at - 1].shape, Counter())[token.shape] += by
        if not known.values:
            del self.kinds[kind]

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


def _add(counts: Counter[T], key: T, by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
