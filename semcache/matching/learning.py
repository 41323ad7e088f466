"""Learning: what a planned prompt, or a judged hit, says of the plan groups that were near it.

What is learned is evidence of its own, news, which is then added to that of the tenant. Words and
weights are learned from every group that was near; what must be proven, only where the risk was low
enough for the group to have been served but for that.
"""

from collections.abc import Collection, Iterable, Sequence

from semcache.matching.cautions import Doubt, keys
from semcache.matching.decision import WeighedGroup
from semcache.matching.evidence import Evidence
from semcache.matching.model.risk import RiskModel, score_key

LABELED = 3
"""Plan groups that a planned prompt labels."""
NEARLY = 1.0
"""Log odds below the lowest score served from which a label counts: the risk was low."""
_FIRST, _OTHERS, _TOLD = 1.0, 0.3, 0.1
"""Weight of a label: for the group that would have been served or whose hit was planned all the
same, for others, and by somebody's word: those who judge hits judge the wrong ones."""


def learn_plan(
    news: Evidence,
    weighed: Sequence[WeighedGroup],
    groups: Collection[str],
    *,
    model: RiskModel,
    cutoff: float,
) -> None:
    """Take in that the plan of a prompt is one of `groups`, for those that were `weighed` for it.

    `model` and `cutoff`: what the tenant's evidence came to before.
    """
    if not weighed:
        return
    _learn_doubts(news, weighed[0], cutoff, same=weighed[0].featured.near.group in groups)
    for rank, one in enumerate(weighed[:LABELED]):
        weight = _OTHERS if rank else _FIRST
        _learn_group(news, one, model, same=one.featured.near.group in groups, weight=weight)
    nearest = max(weighed, key=lambda one: one.featured.near.score)
    news.count(same=nearest.featured.near.group in groups)


def learn_judgment(
    news: Evidence,
    served: WeighedGroup,
    *,
    model: RiskModel,
    cutoff: float,
    right: bool,
    explored: bool,
) -> None:
    """Take in how a hit turned out whose prompt was not planned, or planned to audit it."""
    if explored or not right:
        _learn_doubts(news, served, cutoff, same=right)
    _learn_group(news, served, model, same=right, weight=_FIRST if explored else _TOLD)


def learn_record(news: Evidence, score: float, *, right: bool) -> None:
    """Take in that a hit of that score was right, or wrong."""
    news.record.add(score_key(score), same=right)


def learn_doubts(news: Evidence, doubts: Iterable[Doubt], *, same: bool) -> None:
    """Take in that these differences, at low risk, went with the same plan, or with another."""
    for key in {key: None for doubt in doubts for key in keys(doubt)}:
        news.doubted.add(key, same=same)


def _learn_group(
    news: Evidence, one: WeighedGroup, model: RiskModel, *, same: bool, weight: float
) -> None:
    found = one.featured
    news.learn(found.difference, found.near.group, same=same)
    news.shift(model.step(found.values, found.keys, same=same, weight=weight))


def _learn_doubts(news: Evidence, one: WeighedGroup, cutoff: float, *, same: bool) -> None:
    """Take in what must be proven of a group that was nearly served, or was."""
    if one.score >= cutoff - NEARLY:
        learn_doubts(news, one.doubts, same=same)


def is_sample(served: WeighedGroup, *, right: bool, explored: bool) -> bool:
    """Return whether a judged hit stands for others.

    Of what somebody says only the bad counts: who looks at hits looks at the wrong ones. That the
    same words have another plan says nothing of how well words are told apart.
    """
    if not served.verdict.passed or (right and not explored):
        return False
    how = served.featured.difference
    return right or bool(how.words or how.alike or how.moved or how.switched)
