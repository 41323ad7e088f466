from semcache.explore.report import Report


def test_a_mistake_says_where_the_served_plan_differs(sampled: Report) -> None:
    mistake = sampled.mistakes(1)[0]
    assert mistake.fault == "plan"
    assert any("dry_run" in place and "instead of" in place for place in mistake.differs)
    assert len(sampled.mistakes()) == sampled.wrong
