"""Markup: the report as HTML for a notebook, everything that came from outside escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from semcache.explore.scoring import Share

if TYPE_CHECKING:
    from semcache.explore.looked import Mistake
    from semcache.explore.report import Report

_TENANTS = 12
_MISTAKES = 8


def report_html(report: "Report") -> str:
    """Return the figures, the coverage, the tenants and the worst mistakes as tables."""
    mode = "parameters given" if report.given else "text only"
    parts = [
        f"<h4>{escape(report.name)}: {report.rows} rows, {mode}</h4>",
        _figures(report),
        _coverage(report),
        _tenants(report),
        _mistakes(report.mistakes(_MISTAKES), report.wrong),
    ]
    return f"<div>{''.join(parts)}</div>"


def _figures(report: "Report") -> str:
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
    return _table(("", "count", "share", "95 % bounds", ""), cells)


def _coverage(report: "Report") -> str:
    cells = [
        (f"{c.bound:.1%}", str(c.hits), str(c.right), f"{c.of_ceiling:.1%}")
        for c in report.coverage()
    ]
    return _table(("wrong at most", "hits", "right", "of what could be served"), cells)


def _tenants(report: "Report") -> str:
    scores = report.tenants()
    if len(scores) < 2:
        return ""
    cells = [
        (s.tenant, *map(str, (s.rows, s.ceiling, s.hits, s.right, s.wrong)))
        for s in scores[:_TENANTS]
    ]
    more = f"<p>… and {len(scores) - _TENANTS} tenants more</p>" if len(scores) > _TENANTS else ""
    return _table(("tenant", "rows", "could be served", "hits", "right", "wrong"), cells) + more


def _mistakes(mistakes: Sequence["Mistake"], wrong: int) -> str:
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
    return head + _table(("asked", "wrong", "tier", "served", "since", "differs at"), cells)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    style = "text-align:left;padding:2px 8px"
    top = "".join(f"<th style='{style}'>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    inner = escape(text).replace("\n", "<br>")
    style = "text-align:left;vertical-align:top;max-width:30em;padding:2px 8px"
    return f"<td style='{style}'>{inner}</td>"
