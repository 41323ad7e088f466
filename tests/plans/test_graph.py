"""Which nodes can be reached from which."""

from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.plans.finding import cyclic, never_before, reachable, upstream_first

NODES = st.sampled_from("abcde")
GRAPHS = st.dictionaries(NODES, st.lists(NODES, max_size=3), max_size=5)


@settings(max_examples=100)
@given(GRAPHS, NODES, NODES)
def test_what_never_comes_before_is_what_cannot_be_reached_by_an_edge(
    edges: dict[str, list[str]], source: str, other: str
) -> None:
    behind = reachable(edges, edges.get(source, ()))
    assert (list(never_before(edges, {source: {other}})) == []) == (other in behind)


def test_a_hundred_thousand_nodes_in_a_row_are_walked_without_recursion() -> None:
    count = 100_000
    edges = {str(i): [str(i + 1)] for i in range(count)}
    assert len(reachable(edges, ["0"])) == count + 1
    wanted = {str(i): {str(i + 1)} for i in range(count)}
    assert list(never_before(edges, wanted)) == []


def test_a_walk_that_would_take_too_long_is_given_up_as_possible() -> None:
    count = 3_000
    edges = {str(i): [str(i + 1)] for i in range(count)}
    wanted = {str(i): {"nowhere"} for i in range(count)}
    assert 0 < len(list(never_before(edges, wanted))) < count


def test_what_is_needed_comes_first_and_cycles_never() -> None:
    needed = {"d": ["b", "c", "b"], "b": ["a"], "c": ["a", "gone"], "a": [], "x": ["x"], "y": ["x"]}
    assert list(upstream_first(needed)) == ["a", "b", "c", "d"]
    assert cyclic(needed) == ["x"]


def test_only_the_nodes_of_cycles_and_between_them_are_cyclic() -> None:
    needed = {"up": [], "a": ["b", "up"], "b": ["a"], "mid": ["a"], "c": ["mid", "c"], "end": ["c"]}
    assert cyclic(needed) == ["a", "b", "mid", "c"]
