"""Drawing an intent graph: as text for a terminal, as a picture for a notebook. Nothing to install.

The goal stands on top, each step below all that it is needed by, and an arrow goes from a step to
what needs it: read from the bottom it is the order of the work.
"""

from collections.abc import Iterator
from html import escape

from semcache.planners.steps.intent_graph import IntentGraph, IntentNode, Status

MAX_STEPS = 60
"""Steps that a picture shows; the rest are counted."""
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 250, 62, 24, 46
_CHARS = 38

_MARKS: dict[Status, str] = {
    "active": "?",
    "resolved": "·",
    "executing": "▸",
    "completed": "✓",
    "failed": "✗",
    "suspended": "…",
    "archived": "-",
}
_COLORS: dict[Status, tuple[str, str]] = {
    "active": ("#f4f4f5", "#71717a"),
    "resolved": ("#eff6ff", "#2563eb"),
    "executing": ("#fefce8", "#ca8a04"),
    "completed": ("#f0fdf4", "#16a34a"),
    "failed": ("#fef2f2", "#dc2626"),
    "suspended": ("#fff7ed", "#ea580c"),
    "archived": ("#fafafa", "#a1a1aa"),
}


def text(graph: IntentGraph) -> str:
    """Return the graph as lines: the goal, then each step with its operation and what it needs."""
    lines = [f"{_MARKS[graph.goal.status]} {graph.goal.goal}  [{graph.goal.status}]"]
    if graph.strategy:
        lines.append(f"  by {graph.strategy}, {graph.confidence:.2f} sure")
    lines += [f"  {reason}" for reason in graph.reasons]
    for one in graph.steps:
        lines += _step(graph, one)
    lines += [f"  ! {knot.what}" for knot in graph.knots]
    return "\n".join(lines)


def _step(graph: IntentGraph, one: IntentNode) -> Iterator[str]:
    does = f" → {one.operation}" if one.operation else ""
    needs = graph.dependencies(one.id)
    after = f"  (needs {', '.join(needs)})" if needs else ""
    yield f"  {_MARKS[one.status]} {one.id}: {one.goal}{does}  [{one.status}]{after}"
    if one.found_by:
        yield f"      {one.found_by}"
    if one.note:
        yield f"      {one.note}"


def svg(graph: IntentGraph) -> str:
    """Return the graph as one SVG element; texts are escaped and cut, hovering shows them whole."""
    rows = _rows(graph)
    widest = max(map(len, rows))
    width = widest * (_WIDTH + _GAP_X) + _GAP_X
    height = len(rows) * (_HEIGHT + _GAP_Y) + _GAP_Y
    at = {
        one.id: (
            (width - len(row) * (_WIDTH + _GAP_X) + _GAP_X) / 2 + i * (_WIDTH + _GAP_X),
            _GAP_Y / 2 + depth * (_HEIGHT + _GAP_Y),
        )
        for depth, row in enumerate(rows)
        for i, one in enumerate(row)
    }
    drawn = [*_arrows(graph, at)]
    drawn += [_box(one, *at[one.id]) for row in rows for one in row]
    left = len(graph.steps) - MAX_STEPS
    if left > 0:
        drawn.append(_words(_GAP_X, height - 8, f"and {left} more steps", "#71717a"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(graph.goal.goal[:200], quote=True)}"><defs><marker id="tip" '
        'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#71717a"/></marker></defs>' + "".join(drawn) + "</svg>"
    )


def html(graph: IntentGraph) -> str:
    """Return the graph as HTML for a notebook: the picture, and below it the text to unfold."""
    return (
        f'<div style="overflow-x:auto">{svg(graph)}<details><summary>as text</summary>'
        f"<pre>{escape(text(graph))}</pre></details></div>"
    )


def _rows(graph: IntentGraph) -> list[list[IntentNode]]:
    """Return the goal, then the steps by how many others stand between them and the goal."""
    shown = graph.steps[:MAX_STEPS]
    names = {one.id for one in shown}
    depth = dict.fromkeys(names, 1)
    for _ in shown:  # as many rounds as the longest way has steps; a circle ends here too
        for one in shown:
            above = [depth[name] for name in graph.dependents(one.id) if name in names]
            deeper = max(above, default=0) + 1
            if depth[one.id] < deeper <= len(shown):
                depth[one.id] = deeper
    levels = sorted(set(depth.values()))
    return [[graph.goal], *([one for one in shown if depth[one.id] == at] for at in levels)]


def _arrows(graph: IntentGraph, at: dict[str, tuple[float, float]]) -> Iterator[str]:
    for one in graph.steps:
        if one.id not in at:
            continue
        users = [name for name in graph.dependents(one.id) if name in at]
        for name in users or [graph.goal.id]:
            x, y = at[one.id]
            to_x, to_y = at[name]
            dashed = "" if users else ' stroke-dasharray="4 3"'
            yield (
                f'<line x1="{x + _WIDTH / 2:g}" y1="{y:g}" x2="{to_x + _WIDTH / 2:g}" '
                f'y2="{to_y + _HEIGHT:g}" stroke="#71717a" marker-end="url(#tip)"{dashed}/>'
            )


def _box(one: IntentNode, x: float, y: float) -> str:
    fill, stroke = _COLORS[one.status]
    below = one.operation or (one.intent.kind.replace("_", " ") if one.intent else "goal")
    title = escape(f"{one.goal}\n{one.found_by or one.note}")
    return (
        f'<g><title>{title}</title><rect x="{x:g}" y="{y:g}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" rx="6" fill="{fill}" stroke="{stroke}"/>'
        + _words(x + 10, y + 18, f"{_MARKS[one.status]} {one.name}", stroke)
        + _words(x + 10, y + 35, one.goal, "#18181b")
        + _words(x + 10, y + 52, below, "#52525b")
        + "</g>"
    )


def _words(x: float, y: float, said: str, color: str) -> str:
    one_line = " ".join(said.split())
    cut = one_line if len(one_line) <= _CHARS else f"{one_line[: _CHARS - 1]}…"
    return f'<text x="{x:g}" y="{y:g}" fill="{color}">{escape(cut)}</text>'
