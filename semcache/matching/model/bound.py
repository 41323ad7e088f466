"""The bound of a tenant: what its own samples let be served under the cutoff that ships.

The shipped cutoff is safe on prompts like those of the streams it was tested on. A tenant may be
easier: then the candidates just under the cutoff, whose prompts are planned anyway and so say for
free whether serving them had been right, are wrong more seldom than the bound allows. Each of a few
lower cutoffs is tested for "of what is served from here on, too much is wrong" by betting
(Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting"): a capital
of 1 grows a little with each right sample at or over that score and is cut to a quarter by a wrong
one, so that it shrinks on average where the share of wrong ones is over the bound. A capital of 20
lets the cutoff down, one step after another from the highest ("Learn then Test", Angelopoulos et
al. 2021, fixed sequence testing), and only for as long as it has that much. Over `MOST` nothing is
kept, which spoils no bet: so two wrong samples in a row close what any number of right ones opened.

What holds: the stake is fixed, so that however the samples depend on one another and however their
risk changes, the chance is at most 5 % that in a stretch of samples (`samples.STRETCH`) a step is
ever open while they were, up to that moment, wrong with the bound's probability or more on average
(Ville's inequality; the product of the bets is under a martingale then, as their logarithm is
concave in that probability). Of prompts to come it says as much as they are like those of the
stretch; what keeps it honest if they are not is that samples go on (`WITHHELD`).
Where hits over the shipped cutoff are audited they count too; they are fewer than their share of
the traffic, which errs to the safe side as long as a higher score is no riskier. Where they are
not, the shipped certificate stands for them.
"""

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from semcache.matching.model.risk import CONFIDENCE
from semcache.matching.samples import Sample

STEPS, STEP = 4, 0.5
"""Lower cutoffs that are tested, and log odds between two of them."""
STAKE = 0.75
"""Share of the capital that a wrong sample takes. The capital grows where the share of wrong ones
is under .54 of the bound; at 1 % it takes 400 right samples to open a step."""
MOST = 100.0
"""Capital over which nothing is kept."""
WITHHELD = 5
"""One in so many prompts that would be served below the shipped cutoff is planned all the same, so
that there go on being samples."""
OWN = 16
"""Samples between a step and the one above it without which it stays closed: where nobody labels,
nothing is served on what is known of other scores."""
_OPENS = 1 / (1 - CONFIDENCE)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known now of the wrong share of a tenant's hits by meaning."""

    max_wrong: float
    """The bound: the highest share of them that may be wrong."""
    confidence: float
    """With which what follows holds."""
    share: float | None
    """Share of wrong ones that the tenant's own samples leave possible among what is served by
    them and under the shipped cutoff; None without samples: the shipped certificate is all."""
    samples: int
    """How many samples that is from."""
    wrong: int
    """Those of them that were wrong."""
    loosened: float
    """Log odds by which the cutoff is lower than shipped; under 0: it is higher."""

    def __str__(self) -> str:
        said = f"at most {self.max_wrong:.2%} of hits by meaning wrong"
        if self.share is None:
            return f"{said}, as shipped: the tenant has no samples of its own"
        own = f"own samples leave {self.share:.2%} possible"
        counts = f"{self.wrong} of {self.samples} wrong, confidence {self.confidence:.0%}"
        moved = f"; cutoff {abs(self.loosened):.2f} log odds " if self.loosened else ""
        moved += ("lower" if self.loosened > 0 else "higher") if self.loosened else ""
        return f"{said}; {own} ({counts}){moved}"


class TenantBound:
    """The capital of each lower cutoff, from a tenant's samples one by one."""

    def __init__(self, shipped: float, max_wrong: float, samples: Iterable[Sample] = ()) -> None:
        """`shipped`: the cutoff that holds for tenants without samples; infinite: none to lower."""
        self._shipped = shipped
        self._right = right_factor(max_wrong)
        self._capitals = [1.0] * STEPS
        self._own = [0] * STEPS
        for sample in samples:
            self.take(sample)

    def take(self, sample: Sample) -> None:
        """Take in one more sample."""
        under = (self._shipped - sample.score) / STEP
        first = STEPS if under > STEPS else max(0, math.ceil(under - 1e-9) - 1)
        if first < STEPS and under > 0:
            self._own[first] += 1
        for step in range(first, STEPS):
            self._capitals[step] = bet(self._capitals[step], self._right, right=sample.right)

    @property
    def cutoff(self) -> float:
        """The lowest score that may be served by these samples, or the shipped one."""
        opened = 0
        for capital, own in zip(self._capitals, self._own, strict=True):
            if capital < _OPENS or own < OWN:
                break
            opened += 1
        return self._shipped - opened * STEP if opened else self._shipped


def lowest_sampled(shipped: float) -> float:
    """Return the score from which a candidate that is not served is a sample."""
    return shipped - STEPS * STEP


def is_withheld(prompt: str, one_in: int = WITHHELD) -> bool:
    """Return whether `prompt` is one of those that are planned all the same: as good as chance."""
    return zlib.crc32(prompt.encode(errors="replace")) % one_in == 0


def opens(right: float, wrong: float, max_wrong: float) -> bool:
    """Return whether so many samples win the bet that fewer than `max_wrong` are wrong."""
    return _won(right, wrong, max_wrong) >= math.log(_OPENS)


def is_full(right: float, wrong: float, max_wrong: float) -> bool:
    """Return whether the capital is so large that no more right samples are to be counted."""
    return _won(right, wrong, max_wrong) >= math.log(MOST)


def _won(right: float, wrong: float, max_wrong: float) -> float:
    return right * math.log(right_factor(max_wrong)) + wrong * math.log(1 - STAKE)


def right_factor(max_wrong: float) -> float:
    """Return by how much a right sample multiplies the capital, if a wrong one takes `STAKE`.

    Such that what is wrong with `max_wrong` leaves it as it is on average.
    """
    return 1 + STAKE * max_wrong / (1 - max_wrong)


def bet(capital: float, factor: float, *, right: bool) -> float:
    """Return the capital after one sample, `MOST` at most."""
    return min(MOST, capital * (factor if right else 1 - STAKE))


def certified_share(outcomes: Iterable[bool]) -> float | None:
    """Return the least share of wrong ones for which `outcomes`, oldest first, win the bet.

    So no more are wrong, with `CONFIDENCE`, of the last of them. None if there are none; 1: too few
    to tell, or too many wrong.
    """
    rights = [*outcomes]
    if not rights:
        return None
    low, high = 0.0, 1.0 - 1e-9
    for _ in range(20):  # halving: more capital for a higher share, whatever the outcomes
        middle = (low + high) / 2
        low, high = (low, middle) if _wins(rights, middle) else (middle, high)
    return round(high, 4)


def _wins(rights: Iterable[bool], share: float) -> bool:
    capital, factor = 1.0, right_factor(share)
    for right in rights:
        capital = bet(capital, factor, right=right)
    return capital >= _OPENS
