from collections.abc import Callable

from semcache.explore.report import Report
from semcache.explore.streams import Row

Evaluate = Callable[..., Report]
MakeRow = Callable[..., Row]


def test_nothing_from_outside_reaches_the_html_unescaped(quick: Evaluate, sale: MakeRow) -> None:
    text = "<script>alert(1)</script> in 2023"
    rows = [sale(text, "2023"), sale(text, "2023", operation="<b>returns</b>")]
    made = quick(rows, name="<i>name</i>")
    assert made.wrong == 1
    html = made._repr_html_()
    for tag in ("<script", "<i>", "<b>returns"):
        assert tag not in html


def test_a_report_without_wrong_hits_says_so(quick: Evaluate, sale: MakeRow) -> None:
    assert "No hit was wrong" in quick([sale("a", "1")])._repr_html_()
