"""Domains by the keywords of the settings."""

from semcache import Operation
from semcache.planners.model.relevant import domains_of, in_domains

DOMAINS = {"github": ["issue", "pull request", "pr"], "slack": ["channel", "thread"]}


def make(name: str, summary: str = "Do.") -> Operation:
    return Operation(name, summary, {})


ISSUES = make("github.listIssues")
CHANNELS = make("list_channels", "List the channels of a workspace.")
CLOCK = make("get_time")


def test_a_keyword_is_a_whole_word_in_either_number() -> None:
    assert domains_of("print the price", DOMAINS) == ()
    assert domains_of("list my PRs and threads", DOMAINS) == ("github", "slack")
    assert domains_of("pull the requests", DOMAINS) == ()
    assert domains_of("what is on GitHub?", DOMAINS) == ("github",)


# specs: E-10
def test_operations_of_other_domains_are_hidden_and_those_of_none_are_kept() -> None:
    known = (ISSUES, CHANNELS, CLOCK)
    assert in_domains(known, ("github",), DOMAINS) == (ISSUES, CLOCK)
    assert in_domains(known, (), DOMAINS) == known
    assert in_domains((CHANNELS,), ("github",), DOMAINS) == (CHANNELS,)
