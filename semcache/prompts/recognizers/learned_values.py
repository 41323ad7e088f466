"""Learned values: what the words of earlier parameters of a tenant stood for."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from semcache.canonical import Json, JsonObject, dumps, loads
from semcache.prompts.parameter import Parameter, type_key
from semcache.prompts.recognizers.closed_values import Phrases
from semcache.prompts.tokens import phrase_key
from semcache.prompts.unseen.word_shapes import look
from semcache.prompts.words import CLOSED_CLASS, is_grammar

_USUALLY = 2.0
"""Values that those of all looks weigh against those of one."""
MAX_WORDS = 40
"""Words and signs of the longest value that is learned; longer ones are texts, not names."""


class LearnedValue(NamedTuple):
    """What the words of a value stand for."""

    type: str
    """Slot type that the words were seen with most often; the earlier one on a tie."""
    spelling: str
    """Spelling that a text must have, or empty: "Other" and "IT" count only with their capitals."""


class CopiedShare(NamedTuple):
    """How often the values of one slot type were the words of the prompt."""

    verbatim: int
    """Parameters whose value was their mention, case aside."""
    other: int
    """Parameters whose value was anything else, or that had no mention."""


class LearnedValues:
    """Values of a tenant's earlier parameters, by their words.

    Counted, so that what was added for an entry can be taken back with it. Reads are safe from
    several threads while one thread adds or discards.
    """

    def __init__(self) -> None:
        self._phrases: Phrases[LearnedValue] = Phrases()
        self._types: dict[str, Counter[str]] = {}
        self._values: dict[tuple[str, str], Counter[str]] = {}
        self._copied: dict[str, CopiedShare] = {}
        self._looks: dict[tuple[str, str], Counter[tuple[str, bool]]] = {}
        self._kinds = _Kinds()

    def add(self, parameter: Parameter) -> None:
        """Count one use of `parameter`."""
        self._count(parameter, 1)

    def discard(self, parameter: Parameter) -> None:
        """Take back one earlier `add` of an equal parameter; what was never added is ignored."""
        seen = self._values.get((type_key(parameter.name), phrase_key(parameter.mention or "")))
        if seen is not None and seen[dumps(parameter.value)] > 0:
            self._count(parameter, -1)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and slot type of each value that stands in `text`; spans may overlap."""
        if not self._types:
            return
        for start, end, learned in self._phrases.find(text):
            as_spelled = not learned.spelling or text[start:end] == learned.spelling
            if as_spelled and not is_grammar(text, start, end):
                yield start, end, self._kinds.of(learned.type)

    def kind(self, slot_type: str) -> str:
        """Return the slot type that stands for `slot_type` in template texts.

        Types whose values are mostly the same (origin and destination) share one, else the same
        city would be now of this type, now of that.
        """
        return self._kinds.of(slot_type)

    def translation(self, slot_type: str, mention: str) -> Json:
        """Return the value of `mention` in `slot_type`; None unless it always had the same."""
        values = self._values.get((slot_type, phrase_key(mention)))
        known = [text for text, count in dict(values).items() if count > 0] if values else []
        return loads(known[0]) if len(known) == 1 else None

    def copied_share(self, slot_type: str) -> CopiedShare:
        """Return how often values of `slot_type` were the words of the prompt, and not."""
        return self._copied.get(slot_type, CopiedShare(0, 0))

    def other_share(self, slot_type: str, mention: str) -> float:
        """Return how probable it is that new words in `slot_type` are not the value they stand for.

        By those before them, each once, that looked as `mention` does: "SFO" looks as "LAX" did.
        """
        alike = self._distinct((slot_type, look(mention)))
        looks = [key for key in list(self._looks) if key[0] == slot_type]
        all_ = [self._distinct(key) for key in looks]
        verbatim, other = sum(v for v, _ in all_), sum(o for _, o in all_)
        usual = other / (verbatim + other) if all_ else 0.0
        return (alike.other + _USUALLY * usual) / (alike.verbatim + alike.other + _USUALLY)

    def _distinct(self, key: tuple[str, str]) -> CopiedShare:
        words = list(self._looks.get(key, ()))
        verbatim = sum(copied for _, copied in words)
        return CopiedShare(verbatim, len(words) - verbatim)

    def to_json(self) -> JsonObject:
        """Return all that was learned; its size goes with the values, not with their uses."""
        return {
            "phrases": [[words, *learned] for words, learned in self._phrases.items()],
            "types": {words: dict(types) for words, types in self._types.items()},
            "values": [[*key, dict(values)] for key, values in self._values.items()],
            "copied": {name: list(share) for name, share in self._copied.items()},
            "looks": [
                [*key, [[words, copied, n] for (words, copied), n in counts.items()]]
                for key, counts in self._looks.items()
            ],
            "kinds": self._kinds.to_json(),
        }

    @classmethod
    def from_json(cls, doc: dict[str, Any]) -> "LearnedValues":
        """Return what `to_json` wrote; what is malformed raises as dict access does."""
        learned = cls()
        for words, slot_type, spelling in doc["phrases"]:
            learned._phrases.put(words, LearnedValue(slot_type, spelling))
        learned._types = {words: Counter(types) for words, types in doc["types"].items()}
        learned._values = {(name, words): Counter(known) for name, words, known in doc["values"]}
        learned._copied = {name: CopiedShare(*share) for name, share in doc["copied"].items()}
        learned._looks = {
            (name, shapes): Counter({(words, copied): n for words, copied, n in counts})
            for name, shapes, counts in doc["looks"]
        }
        learned._kinds = _Kinds.from_json(doc["kinds"])
        return learned

    def _count(self, parameter: Parameter, by: int) -> None:
        slot_type, words = type_key(parameter.name), phrase_key(parameter.mention or "")
        self._count_value((slot_type, words), dumps(parameter.value), by)
        verbatim, other = self.copied_share(slot_type)
        copied = bool(words) and phrase_key(str(parameter.value)) == words
        self._count_look(slot_type, parameter, words, copied=copied, by=by)
        if copied:
            self._copied[slot_type] = CopiedShare(verbatim + by, other)
        else:
            self._copied[slot_type] = CopiedShare(verbatim, other + by)
        if self._copied[slot_type] == CopiedShare(0, 0):
            del self._copied[slot_type]
        if parameter.mention is not None and _can_be_learned(parameter.mention, words):
            self._retype(slot_type, parameter.mention, words, by)

    def _count_value(self, key: tuple[str, str], value: str, by: int) -> None:
        # Nothing stays of a value that no entry has any more: it may be gone for good reasons.
        counts = self._values.setdefault(key, Counter())
        counts[value] += by
        if not counts[value]:
            del counts[value]
        if not counts:
            del self._values[key]

    def _count_look(
        self, slot_type: str, parameter: Parameter, words: str, *, copied: bool, by: int
    ) -> None:
        key = slot_type, look(parameter.mention or "")
        counts = self._looks.setdefault(key, Counter())
        said = (words or dumps(parameter.value), copied)
        counts[said] += by
        if not counts[said]:
            del counts[said]
        if not counts:
            del self._looks[key]

    def _retype(self, slot_type: str, mention: str, words: str, by: int) -> None:
        types = self._types.setdefault(words, Counter())
        types[slot_type] += by
        self._kinds.count(slot_type, types, by)
        if types[slot_type] <= 0:
            del types[slot_type]
        if not types:
            del self._types[words]
            self._phrases.drop(words)
        else:
            best, _ = types.most_common(1)[0]
            spelling = mention.strip() if words in CLOSED_CLASS else ""
            self._phrases.put(words, LearnedValue(best, spelling))


SHARED_WORDS = 5
"""Values that two types share before they are taken for one: New York is a city and a state."""


class _Kinds:
    """Which slot types have mostly the same values."""

    def __init__(self) -> None:
        self._sizes: Counter[str] = Counter()
        self._shared: Counter[tuple[str, str]] = Counter()
        self._kinds: dict[str, str] = {}

    def to_json(self) -> JsonObject:
        return {
            "sizes": dict(self._sizes),
            "shared": [[*pair, count] for pair, count in self._shared.items()],
            "kinds": dict(self._kinds),
        }

    @classmethod
    def from_json(cls, doc: dict[str, Any]) -> "_Kinds":
        kinds = cls()
        kinds._sizes = Counter(doc["sizes"])
        kinds._shared = Counter({(left, right): count for left, right, count in doc["shared"]})
        kinds._kinds = dict(doc["kinds"])
        return kinds

    def of(self, slot_type: str) -> str:
        return self._kinds.get(slot_type, slot_type)

    def count(self, slot_type: str, types: Counter[str], by: int) -> None:
        """Take note that the use of a value in `slot_type` went by `by` to what `types` says."""
        began, ended = by > 0 and types[slot_type] == by, by < 0 and types[slot_type] == 0
        if not (began or ended):
            return
        self._sizes[slot_type] += by
        for other, uses in types.items():
            if other != slot_type and uses > 0:
                pair = (min(other, slot_type), max(other, slot_type))
                self._shared[pair] += by
                if self._are_one(pair):
                    self._join(*pair)

    def _are_one(self, pair: tuple[str, str]) -> bool:
        shared = self._shared[pair]
        return shared >= SHARED_WORDS and 2 * shared >= min(self._sizes[name] for name in pair)

    def _join(self, left: str, right: str) -> None:
        old, new = sorted((self.of(left), self.of(right)), reverse=True)
        if old != new:
            # Built anew and swapped in, so that a reader sees all of it or nothing.
            members = {*self._kinds, left, right}
            self._kinds = {m: new if self.of(m) == old else self.of(m) for m in members}


def _can_be_learned(mention: str, words: str) -> bool:
    """Return whether `mention` is a name: no bare number, sentence, or word such as "the"."""
    if not any(map(str.isalpha, words)) or words.count(" ") >= MAX_WORDS:
        return False
    return words not in CLOSED_CLASS or mention.strip() != mention.strip().lower()
