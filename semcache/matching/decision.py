"""Decision: whether a plan group may be served to a prompt, or what speaks against it.

A negation, a comparison, a direction, a preposition, what a question asks for, another word order
or a word said once more changes what is asked more often than not, however near two prompts are in
meaning. They pass once a tenant's own planned prompts have shown them harmless, or others of their
kind where the risk was low (`cautions`). A word that no stored template ever had is a value or a
condition that no plan knows, unless the caller gave the values. What remains is a matter of risk.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semcache.matching.cautions import STEERING, Cautions, Doubt, is_cleared
from semcache.matching.evidence import MOVED, TURNED, Evidence, kind, order
from semcache.matching.gates import Verdict
from semcache.matching.model.features import Beliefs, GroupFeatures, MatchContext, upper_share
from semcache.matching.model.risk import probability_wrong
from semcache.matching.plan_groups import PlanGroups
from semcache.matching.words.classes import stem, word_class
from semcache.matching.words.content import MARKS, telling_words
from semcache.matching.words.difference import Difference
from semcache.prompts.template import slot_name
from semcache.prompts.unseen.supposition import Supposed
from semcache.prompts.words import PRONOUNS

PROVEN = 0.45
"""A word is proven harmless when its share of other plans is surely under this: after two labels
that said so and none against, or with a few against after many more."""
HABIT = 0.15
"""A class of words is harmless when its share of other plans is surely under this: after a dozen
labels that said so and hardly one against."""
LIGHT_HABIT = 0.35
"""The same for prepositions and words that widen what is asked for anyway, which the risk weighs
too: after three labels that said so and none against."""
_WIDENING = frozenset("all any some several also too even entire whole".split())
MISREAD = 0.15
"""Share of wrong suppositions of a class over which none of it is served."""
_MUST_BE_PROVEN = frozenset({"meaning", "role", "digit"})
_ASKED = frozenset({"who", "whom", "whose", "when", "where", "why", "how"})
"""Words of which one for another asks for another thing; "who" alone is often said or not."""


def doubts(difference: Difference, context: MatchContext) -> tuple[Doubt, ...]:
    """Return what of a difference neither its words nor their classes prove harmless."""
    # What a tenant's prompts use is a word of its own and no typing error: "stage" for "state".
    typed = [word for word in difference.typed if context.groups.using(word)]
    words = [*dict.fromkeys((*difference.words, *difference.formed, *typed))]
    words += [order(difference)] if difference.moved else []
    switched = frozenset(difference.switched)
    words += difference.switched
    if not words:
        return ()
    formed = frozenset((*difference.formed, *typed))
    exchanged, repeated = _exchanged(difference), _repeated(difference, context.words)
    extra = () if context.given else difference.extra
    unheard = frozenset(word for word in extra if _is_unheard(word, context.groups))
    must = formed | exchanged | repeated | unheard
    beliefs = context.beliefs
    doubtful = [
        word
        for word in words
        if word in switched
        or ((_must_be_proven(word) or word in must) and beliefs.upper(word) > PROVEN)
    ]
    if not doubtful:
        return ()
    habits = _habits(difference)
    cautions = Cautions(
        difference,
        switched=switched,
        unheard=unheard,
        formed=formed,
        exchanged=exchanged,
        repeated=repeated,
        parties=not context.given and len({s.kind for s in context.slots}) < len(context.slots),
    )
    return tuple(
        cautions.doubt(word)
        for word in doubtful
        if word in switched or not (kind(word) in habits and _is_habit(word, beliefs))
    )


def unproven(doubted: Sequence[Doubt], evidence: Evidence) -> tuple[str, ...]:
    """Return the words of `doubted` that must not pass; empty if all may."""
    return tuple(doubt.word for doubt in doubted if not is_cleared(doubt, evidence))


def _exchanged(difference: Difference) -> frozenset[str]:
    """Return the question words, or pronouns, that stand for one another: "my" for "her"."""
    sides = set(difference.extra), set(difference.missing)
    if not all(sides):
        return frozenset()
    return frozenset(
        word
        for each in (_ASKED, PRONOUNS)
        if all(side & each for side in sides)
        for side in sides
        for word in side & each
    )


def _repeated(difference: Difference, mine: Sequence[str]) -> frozenset[str]:
    """Return the words that one side says once more than the other: "states that border states".

    Values apart, whose number the gates compare.
    """
    said, extra = Counter(mine), Counter(difference.extra)
    more = {word for word, times in extra.items() if said[word] > times}
    return frozenset(more.union(word for word in difference.missing if word in said))


def unproven_values(context: MatchContext, cutoff: float) -> tuple[str, ...]:
    """Return what was supposed to be a value and is not known well enough to be one.

    That it is one must be as sure as a plan must be: `cutoff` is the lowest score served.
    """
    return tuple(
        one.mention.text
        for one in context.supposed
        if one.odds < cutoff or context.evidence.share_misread(one) > MISREAD
    )


def misplaced_values(context: MatchContext, its: Sequence[str]) -> tuple[str, ...]:
    """Return what was supposed to be a value and stands behind another word than in `its` words.

    What an unseen value is, nothing but the words around it tells: one "undergone" is a procedure,
    and one that a patient "has" may be anything.
    """
    return tuple(
        one.mention.text
        for one in context.supposed
        if not _places(context.words, one) <= _places(its, one)
    )


def _places(words: Sequence[str], supposed: Supposed) -> set[str]:
    """Return the stems of the words before the slots of the supposed kind; empty at the start."""
    slot = f"<{slot_name(supposed.mention.kind)}>"
    said = [word for word in words if word not in MARKS]
    return {stem(said[at - 1]) if at else "" for at, word in enumerate(said) if word == slot}


def _habits(difference: Difference) -> frozenset[str]:
    """Return the classes of words that what their class came to may speak for.

    A preposition or a word of scope that is only more or only less, not one for another: of "from"
    and "to" each is harmless in many prompts, and one for the other in none.
    """
    extra, missing = set(map(kind, difference.extra)), set(map(kind, difference.missing))
    return frozenset(each for each in ("role", "scope") if not (each in extra and each in missing))


def _is_habit(word: str, beliefs: Beliefs) -> bool:
    """Return whether the words of its class are known to be harmless, and it not to matter."""
    evidence = beliefs.evidence
    same, other = evidence.words.of(word)
    bound = LIGHT_HABIT if kind(word) == "role" or word in _WIDENING else HABIT
    return other <= same and upper_share(*evidence.kinds.of(kind(word))) <= bound


def _must_be_proven(word: str) -> bool:
    return word in {MOVED, TURNED} or word in STEERING or word_class(word) in _MUST_BE_PROVEN


def _is_unheard(word: str, groups: PlanGroups) -> bool:
    return word_class(word) == "open" and not groups.using(word)


_LOW_RISK = Verdict("risk", passed=True)


class _Judged(NamedTuple):
    verdict: Verdict
    doubts: tuple[Doubt, ...] = ()


class DecisionRule(NamedTuple):
    """What groups are judged by."""

    context: MatchContext
    cutoff: float
    """Lowest score that may be served."""


_PASSED_OVER = _Judged(Verdict("risk", passed=False, reason="another plan group came before it"))


@dataclass(slots=True)
class WeighedGroup:
    """A group of neighbors and what the risk model says of it."""

    featured: GroupFeatures
    score: float
    """Log odds that it has the prompt's plan."""
    _rule: DecisionRule | None = field(repr=False)
    _judged: _Judged | None = field(default=None, repr=False)

    @property
    def entry(self) -> str:
        """Id of the entry that would be served."""
        return self.featured.near.entry

    @property
    def verdict(self) -> Verdict:
        """Whether it may be served, and if not, why."""
        return self.judge().verdict

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What of its difference only the record of its kind can clear."""
        return self.judge().doubts

    @property
    def is_turned(self) -> bool:
        """Whether it was refused for words of negation, comparison or direction."""
        verdict = self.verdict
        words = [doubt.word for doubt in self.doubts if not doubt.word.startswith("<")]
        refused = verdict.gate == "words" and not verdict.passed
        return refused and any(word_class(word) == "meaning" for word in words)

    def judge(self) -> _Judged:
        """Return what is said of it, worked out when first asked."""
        if self._judged is None:
            if self._rule is None:
                return _PASSED_OVER
            self._judged = _judged(self.featured, self.score, self._rule)
            self._rule = None
        return self._judged

    def judged_by(self, rule: DecisionRule | None) -> "WeighedGroup":
        """Return the same group to be judged by `rule` where it was not judged yet."""
        return WeighedGroup(self.featured, self.score, rule, self._judged)

    def settle(self) -> None:
        """Let go of what it is judged by, once the lookup is over: groups are kept for longer."""
        self._rule = None


def _judged(one: GroupFeatures, score: float, rule: DecisionRule) -> _Judged:
    supposed = unproven_values(rule.context, rule.cutoff)
    if supposed:
        reason = f"not known to be values: {', '.join(map(repr, supposed))}"
        return _Judged(Verdict("slots", passed=False, reason=reason))
    if rule.context.supposed and not telling_words(one.near.words):
        reason = "no word of the template says what a word never heard could be"
        return _Judged(Verdict("slots", passed=False, reason=reason))
    misplaced = misplaced_values(rule.context, one.near.words)
    if misplaced:
        reason = f"values behind other words than its own: {', '.join(map(repr, misplaced))}"
        return _Judged(Verdict("slots", passed=False, reason=reason))
    doubted = doubts(one.difference, rule.context)
    doubtful = unproven(doubted, rule.context.evidence)
    if doubtful:
        reason = f"not known to be harmless: {', '.join(map(repr, doubtful))}"
        return _Judged(Verdict("words", passed=False, reason=reason), doubted)
    if score >= rule.cutoff:
        return _Judged(_LOW_RISK, doubted)
    reason = (
        f"wrong with probability {probability_wrong(score):.3f}; "
        f"served up to {probability_wrong(rule.cutoff):.3f}"
    )
    words = one.difference.words
    if words:
        reason += f" (differs in {', '.join(map(repr, words[:6]))})"
    return _Judged(Verdict("risk", passed=False, reason=reason), doubted)
