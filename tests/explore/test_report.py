import json

from semcache.canonical import dumps
from semcache.explore.report import Report


def test_figures_add_up(sampled: Report) -> None:
    outcomes = [one.outcome for one in sampled.lookups]
    assert sampled.right + sampled.wrong == len(sampled.hits)
    assert outcomes.count("missed") == sampled.rows - len(sampled.hits)
    assert sum(sampled.faults().values()) == sampled.wrong > 0
    assert sum(sampled.tiers().values()) == len(sampled.hits)
    scores = sampled.tenants()
    assert sum(score.rows for score in scores) == sampled.rows
    assert sum(score.wrong for score in scores) == sampled.wrong


def test_the_report_is_json_text_and_html(sampled: Report) -> None:
    doc = json.loads(dumps(sampled.to_dict(mistakes=3)))
    assert doc["wrong"]["count"] == sampled.wrong
    assert len(doc["mistakes"]) == 3
    assert f"{sampled.rows} rows" in str(sampled)
    first = sampled.tenants()[0]
    assert f"{first.tenant}: {first.right} of {first.ceiling} right" in str(sampled)
    last = sampled.curve()[-1]
    assert f"{last.precision:.1%} of {last.hit_ratio:.1%}" in str(sampled)
    html = sampled._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 4
