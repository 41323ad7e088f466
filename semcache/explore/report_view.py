"""The report of a replay as lines for a terminal and as HTML for a notebook.

In the HTML everything that came from outside is escaped.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from semcache.explore.replayed_lookup import Fault
from semcache.explore.score import Share

if TYPE_CHECKING:
    from semcache.explore.replayed_lookup import Mistake
    from semcache.explore.report import Report

_TENANTS = 6
"""Tenants that are told one by one, those with most rows first."""
_HTML_TENANTS = 12
_HTML_MISTAKES = 8
_FAULTS: dict[Fault, str] = {
    "plan": "wrong plan",
    "values": "right plan, wrong values",
    "must miss": "no plan may be served",
    "": "",
}


def report_lines(report: "Report", *, mistakes: int) -> list[str]:
    """Return the figures, the curves, the tenants and the worst mistakes, at most so many."""
    curves = (*_coverage_lines(report), *_curve_lines(report), *_reliability_lines(report))
    tables = (*curves, *_bound_lines(report), *_tenant_lines(report))
    return [*_head(report), *tables, *_mistake_lines(report, mistakes)]


def _head(report: "Report") -> list[str]:
    faults = report.faults()
    told = ", ".join(f"{n} {_FAULTS[fault]}" for fault, n in faults.most_common())
    lost = ", ".join(f"{reason} {n}" for reason, n in report.lost().most_common(6))
    mode = "parameters given" if report.given else "text only"
    head = [
        f"{report.name}: {report.rows} rows, {mode}",
        f"  could be served    {Share(report.ceiling, report.rows)}",
        *(
            [f"  asked before       {Share(report.repeated, report.rows)}"]
            if report.repeated
            else []
        ),
        f"  hits               {report.hit_share}",
        f"  right, of those    {report.right_share}",
        f"  wrong, of hits     {report.wrong_share}",
    ]
    if told:
        head.append(f"    {told}")
    if lost:
        head.append(f"  lost: {lost}")
    if report.unstored:
        plans = "1 plan" if len(report.unstored) == 1 else f"{len(report.unstored)} plans"
        head.append(f"  {plans} not kept, the first: {report.unstored[0][1]}")
    return head


def _coverage_lines(report: "Report") -> list[str]:
    best = (f"{c.of_ceiling:.1%} at {c.bound:.1%}" for c in report.coverage())
    return [f"  right, if at most so much is wrong: {', '.join(best)}"]


def _curve_lines(report: "Report") -> list[str]:
    points = report.curve()
    if not points:
        return []
    wanted = [points[-1].hits * quarter / 4 for quarter in (1, 2, 3, 4)]
    shown = dict.fromkeys(next(p for p in points if p.hits >= hits) for hits in wanted)
    told = ", ".join(f"{p.precision:.1%} of {p.hit_ratio:.1%}" for p in shown)
    return [f"  right, of the surest rows served: {told}"]


def _reliability_lines(report: "Report") -> list[str]:
    told = report.reliability()
    if not told:
        return []
    bins = ", ".join(f"{b.foretold:.2%} told {b.wrong.value:.2%} of {b.hits}" for b in told)
    return [f"  risk told and hits that were wrong: {bins}"]


def _bound_lines(report: "Report") -> list[str]:
    told = [*report.certificates().items()]
    if len(told) == 1:
        return [f"  bound: {told[0][1]}"]
    return [f"  bound of {tenant}: {said}" for tenant, said in told[:_TENANTS]]


def _tenant_lines(report: "Report") -> list[str]:
    scores = report.tenants()
    if len(scores) < 2:
        return []
    told = [f"    {s.tenant}: {s.right} of {s.ceiling} right, {s.wrong} of {s.hits} hits wrong"
            for s in scores[:_TENANTS]]  # fmt: skip
    more = len(scores) - len(told)
    return ["  by tenant:", *told, *([f"    and {more} tenants more"] if more else [])]


def _mistake_lines(report: "Report", count: int) -> list[str]:
    lines: list[str] = []
    for one in report.mistakes(count):
        lines.append(f"  {_FAULTS[one.fault]} ({one.sure})")
        lines.append(f"    asked   {one.row.text}")
        lines.append(f"    served  {one.hit.key}")
        lines.append(f"    since   {one.reason}")
        lines += [f"    {place}" for place in one.differs]
    return lines


def report_html(report: "Report") -> str:
    """Return the figures, the coverage, the tenants and the worst mistakes as tables."""
    mode = "parameters given" if report.given else "text only"
    parts = [
        f"<h4>{escape(report.name)}: {report.rows} rows, {mode}</h4>",
        _html_figures(report),
        _html_coverage(report),
        _html_tenants(report),
        _html_mistakes(report.mistakes(_HTML_MISTAKES), report.wrong),
    ]
    return f"<div>{''.join(parts)}</div>"


def _html_figures(report: "Report") -> str:
    faults = ", ".join(f"{fault}: {n}" for fault, n in report.faults().most_common())
    rows = [
        ("could be served, of rows", Share(report.ceiling, report.rows), ""),
        ("asked before, of rows", Share(report.repeated, report.rows), ""),
        ("hits, of rows", report.hit_share, ""),
        ("rightly served, of what could be", report.right_share, ""),
        ("wrongly served, of hits", report.wrong_share, faults),
    ]
    cells = [
        (name, f"{s.count} of {s.of}", f"{s.value:.1%}", f"{s.low:.1%} to {s.high:.1%}", note)
        for name, s, note in rows
    ]
    return _html_table(("", "count", "share", "95 % bounds", ""), cells)


def _html_coverage(report: "Report") -> str:
    cells = [
        (f"{c.bound:.1%}", str(c.hits), str(c.right), f"{c.of_ceiling:.1%}")
        for c in report.coverage()
    ]
    return _html_table(("wrong at most", "hits", "right", "of what could be served"), cells)


def _html_tenants(report: "Report") -> str:
    scores = report.tenants()
    if len(scores) < 2:
        return ""
    cells = [
        (s.tenant, *map(str, (s.rows, s.ceiling, s.hits, s.right, s.wrong)))
        for s in scores[:_HTML_TENANTS]
    ]
    more = (
        f"<p>… and {len(scores) - _HTML_TENANTS} tenants more</p>"
        if len(scores) > _HTML_TENANTS
        else ""
    )
    return (
        _html_table(("tenant", "rows", "could be served", "hits", "right", "wrong"), cells) + more
    )


def _html_mistakes(mistakes: Sequence["Mistake"], wrong: int) -> str:
    if not mistakes:
        return "<p>No hit was wrong.</p>"
    cells = [
        (
            one.row.text,
            one.fault,
            one.sure,
            one.hit.key,
            one.reason,
            "\n".join(one.differs),
        )
        for one in mistakes
    ]
    head = f"<p>The {len(cells)} surest of {wrong} wrong hits:</p>"
    return head + _html_table(("asked", "wrong", "tier", "served", "since", "differs at"), cells)


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    style = "text-align:left;padding:2px 8px"
    top = "".join(f"<th style='{style}'>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(text: str) -> str:
    inner = escape(text).replace("\n", "<br>")
    style = "text-align:left;vertical-align:top;max-width:30em;padding:2px 8px"
    return f"<td style='{style}'>{inner}</td>"
