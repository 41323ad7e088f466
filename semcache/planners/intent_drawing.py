"""An intent graph as text for a terminal, and as a Mermaid flowchart for a notebook."""

from collections.abc import Iterator

from semcache.planners.intent_graph import IntentGraph, IntentNode, Status

MAX_STEPS = 60
"""Steps that a flowchart shows; the rest are counted."""
_CHARS = 38

_MARKS: dict[Status, str] = {
    "active": "?",
    "resolved": "·",
    "executing": "▸",
    "completed": "✓",
    "failed": "✗",
    "suspended": "…",
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


def mermaid(graph: IntentGraph) -> str:
    """Return the graph as a Mermaid flowchart, which notebooks and code hosts draw.

    The goal stands on top, and an arrow goes from a step to what needs it: read from the bottom it
    is the order of the work. Steps beyond the first sixty are counted.
    """
    shown = graph.steps[:MAX_STEPS]
    ids = {one.id: f"n{number}" for number, one in enumerate((graph.goal, *shown))}
    lines = ["flowchart BT"]
    lines += [_box(one, ids[one.id]) for one in (graph.goal, *shown)]
    for one in shown:
        users = [name for name in graph.dependents(one.id) if name in ids]
        lines += [f"  {ids[one.id]} --> {ids[name]}" for name in users]
        lines += [] if users else [f"  {ids[one.id]} -.-> {ids[graph.goal.id]}"]
    left = len(graph.steps) - len(shown)
    lines += [f'  more["and {left} more steps"]'] if left else []
    return "\n".join(lines)


def _box(one: IntentNode, name: str) -> str:
    below = one.operation or (one.intent.kind.replace("_", " ") if one.intent else "goal")
    words = (f"{_MARKS[one.status]} {one.name}", one.goal, below)
    return f'  {name}["{"<br/>".join(map(_label, words))}"]'


def _label(said: str) -> str:
    """Return words as Mermaid shows them: cut, on one line, every sign of its own as an entity."""
    line = " ".join(said.split())
    cut = line if len(line) <= _CHARS else f"{line[: _CHARS - 1]}…"
    return "".join(one if one.isalnum() or one in " _-.,…✓✗·▸?" else f"#{ord(one)};" for one in cut)
