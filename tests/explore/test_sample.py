from semcache.explore.sample import sample_rows


def test_the_sample_is_the_same_for_the_same_seed() -> None:
    assert sample_rows(50) == sample_rows(50)
    assert sample_rows(50) != sample_rows(50, seed=2)


def test_every_value_stands_in_its_prompt() -> None:
    rows = sample_rows(300)
    assert all(p.mention in row.text for row in rows for p in row.params if p.mention)
    assert {row.scope for row in rows} == {"rooms", "tickets"}
    assert any(row.plan is None for row in rows)


def test_noise_changes_plans_and_nothing_else() -> None:
    clean, noisy = sample_rows(300, noise=0), sample_rows(300, noise=1)
    assert [row.text for row in clean] == [row.text for row in noisy]
    assert sum("dry_run" in str(row.plan) for row in clean) == 0
    assert all("dry_run" in str(row.plan) for row in noisy if row.plan)
