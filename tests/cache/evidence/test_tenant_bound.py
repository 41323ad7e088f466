"""A tenant's own plans let more be served, and take it back; read through the calls of a cache."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from semcache import Miss, PlanCache
from semcache.cache.evidence.evidence_notes import UNANSWERED
from semcache.cache.transfer import evidence_text
from semcache.matching.evidence import Evidence
from semcache.matching.model.bound import STEP, is_withheld
from semcache.matching.samples import Sample, Samples
from semcache.testing import HashEmbedder
from tests.cache.learning import plan
from tests.calling import hit

WORDS = "state", "city", "month", "product", "net margin", "summary report", "yearly forecast"


def opened(directory: Path | None, bound: float, *, frozen: bool = False) -> PlanCache:
    cache = PlanCache.open(directory, embedder=HashEmbedder(), max_wrong=bound, frozen=frozen)
    for word in () if frozen else WORDS:
        cache.store(f"total sales by {word}", plan(word))
    return cache


class Nearly(NamedTuple):
    """A prompt that is refused for a risk that is hardly too high for a bound."""

    bound: float
    prompt: str
    sample: Sample
    """Right, as far below the cutoff as its candidate."""
    scale: str


def nearly_served(bound: float, prompt: str) -> Nearly | None:
    """Return a prompt that is refused for its risk, if it says how far that is from the cutoff."""
    with opened(None, bound) as cache:
        missed = cache.lookup(prompt)
        if not isinstance(missed, Miss) or missed.reason != "risk":
            return None
        cache.store(prompt, plan("state"))
        found = cache.evidence().samples
        return Nearly(bound, prompt, found.kept[0], found.scale) if found.kept else None


Teach: TypeAlias = Callable[[PlanCache, Evidence], object]


@pytest.fixture(scope="module")
def teach(tmp_path_factory: pytest.TempPathFactory) -> Teach:
    """Add evidence to that of a cache."""
    path = tmp_path_factory.mktemp("evidence") / "evidence.json"

    def add(cache: PlanCache, evidence: Evidence) -> None:
        path.write_text(evidence_text(evidence), encoding="utf-8")
        cache.import_evidence(path)

    return add


@pytest.fixture(scope="module")
def nearly(teach: Teach) -> Nearly:
    """What a step served, that samples open, and none before it."""
    asked = [f"total sales by state {word}" for word in "report list figures table view".split()]
    asked = [prompt for prompt in asked if not is_withheld(prompt)]
    for bound in (0.05, 0.04, 0.03, 0.025, 0.02, 0.018, 0.016, 0.014, 0.0125, 0.011, 0.01):
        for prompt in asked:
            found = nearly_served(bound, prompt)
            if found is None:
                continue
            with opened(None, bound) as cache:
                teach(cache, samples(found, [True] * ENOUGH))
                certificate = cache.stats().certificate
                if cache.lookup(prompt) and certificate and certificate.loosened == STEP:
                    return found
    pytest.fail("no prompt is nearly served under any bound")


def samples(nearly: Nearly, rights: list[bool], *, scale: str = "") -> Evidence:
    kept = [nearly.sample._replace(right=right) for right in rights]
    return Evidence(samples=Samples(scale or nearly.scale, kept))


ENOUGH = 500
"""Right samples that open a step under any of the bounds above."""


def spellings(prompt: str, *, withheld: bool) -> list[str]:
    """Return ways to write a prompt that are read alike, of which all or none are withheld."""
    words = prompt.split()
    ways = itertools.product(*[(word, word.capitalize(), word.upper()) for word in words])
    return [way for each in ways if is_withheld(way := " ".join(each)) is withheld]


def test_right_samples_open_a_step_and_two_wrong_hits_close_it(
    nearly: Nearly, teach: Teach
) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    with opened(None, bound) as cache:
        assert not cache.lookup(prompt)
        teach(cache, samples(nearly, [True] * ENOUGH))
        found = hit(cache.lookup(prompt))
        assert found.tier == "semantic"
        cache.judged(found, right=False)
        cache.judged(found, right=False)
        again = cache.lookup(prompt)
        assert isinstance(again, Miss)
        assert again.reason == "risk"


def test_the_certificate_tells_share_samples_and_how_far_it_is_from_shipped(
    nearly: Nearly,
    teach: Teach,
) -> None:
    with opened(None, nearly.bound) as cache:
        before = cache.stats().certificate
        teach(cache, samples(nearly, [True] * ENOUGH))
        now, other = cache.stats().certificate, cache.stats(tenant="other").certificate
    assert before is not None
    assert before == other
    assert (before.share, before.samples, before.loosened) == (None, 0, 0.0)
    assert now is not None
    assert (now.samples, now.wrong, now.loosened) == (ENOUGH, 0, STEP)
    assert now.share is not None
    assert now.share < nearly.bound
    assert (now.max_wrong, now.confidence) == (nearly.bound, 0.95)


def test_some_of_what_samples_opened_is_withheld_and_its_plan_is_the_next_sample(
    nearly: Nearly,
    teach: Teach,
) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    with opened(None, bound) as cache:
        teach(cache, samples(nearly, [True] * ENOUGH))
        withheld = spellings(prompt, withheld=True)[0]
        found = cache.lookup(withheld)
        assert isinstance(found, Miss)
        assert found.reason == "explored"
        assert cache.lookup(spellings(prompt, withheld=False)[0])
        cache.store(withheld, plan("state"))
        assert len(cache.evidence().samples.kept) == ENOUGH + 1
        assert cache.evidence().samples.kept[-1].right


def test_where_no_plans_come_for_what_is_withheld_nothing_is_served_on_old_samples(
    nearly: Nearly,
    teach: Teach,
) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    with opened(None, bound) as cache:
        teach(cache, samples(nearly, [True] * ENOUGH))
        asked, withheld = (spellings(prompt, withheld=w) for w in (False, True))
        for each in withheld[: UNANSWERED - 1]:
            cache.lookup(each)
            cache.lookup(each, what_if=True)  # only looks: nothing is withheld by it
        assert cache.lookup(asked[0])
        cache.lookup(withheld[UNANSWERED])
        assert not cache.lookup(asked[0])
        cache.store(withheld[UNANSWERED], plan("another"))
        assert cache.lookup(asked[0])


def sampled(cache: PlanCache, prompt: str, what: str) -> list[bool]:
    """Return what the plan of a prompt said of the candidate that was not served."""
    before = len(cache.evidence().samples.kept)
    assert not cache.lookup(prompt)
    cache.store(prompt, plan(what))
    return [sample.right for sample in cache.evidence().samples.kept[before:]]


def test_the_plan_of_a_prompt_says_whether_the_refused_candidate_was_right(
    nearly: Nearly,
) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    for what, expected in (("state", [True]), ("something else", [False])):
        with opened(None, bound) as cache:
            assert sampled(cache, prompt, what) == expected


def test_words_for_which_the_tenant_has_two_plans_are_no_sample(nearly: Nearly) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    with opened(None, bound) as cache:
        assert not cache.lookup(prompt)
        # Another caller's plan for the same words comes first, and is not this one.
        cache.store(prompt.upper(), plan("a third"))
        cache.store(prompt, plan("a fourth"))
        assert not cache.evidence().samples.kept


def test_audits_are_samples_and_praise_is_none(nearly: Nearly) -> None:
    with opened(None, nearly.bound) as cache:
        found = hit(cache.lookup("please show me total sales by state"))
        cache.feedback(found, right=True)
        assert not cache.evidence().samples.kept
        assert cache.audit(found, plan("state"))
        assert [sample.right for sample in cache.evidence().samples.kept] == [True]


def test_samples_are_kept_for_the_next_process_and_go_when_the_tenant_is_cleared(
    nearly: Nearly, teach: Teach, tmp_path: Path
) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    with opened(tmp_path / "cache", bound) as cache:
        teach(cache, samples(nearly, [True] * ENOUGH))
    with opened(tmp_path / "cache", bound, frozen=True) as cache:
        assert not cache.lookup(prompt), "a cache that takes no plans gets no further samples"
        assert len(cache.evidence().samples.kept) == ENOUGH
    with opened(tmp_path / "cache", bound) as cache:
        assert cache.lookup(prompt)
        cache.clear(tenant="default")
        assert not cache.evidence().samples.kept
        certificate = cache.stats().certificate
        assert certificate is not None
        assert certificate.loosened == 0


def test_samples_of_another_embedder_or_prior_say_nothing(nearly: Nearly, teach: Teach) -> None:
    bound, prompt = nearly.bound, nearly.prompt
    with opened(None, bound) as cache:
        teach(cache, samples(nearly, [True] * ENOUGH, scale="another"))
        assert not cache.lookup(prompt)
        teach(cache, samples(nearly, [True]))
        assert len(cache.evidence().samples.kept) == 1
