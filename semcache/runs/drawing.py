"""Drawing a run: lines for a terminal, rich where it is there, folded HTML for a notebook."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from semcache.runs.tree import Node, Run

if TYPE_CHECKING:
    from rich.text import Text

MAX_LINES = 1000
MAX_CHARS = 100  # of one text in a line

_MARKS = {"running": "…", "completed": "✓", "failed": "✗", "cancelled": "■", "revised": "↻"}
_COLORS = {"failed": "red", "cancelled": "yellow", "revised": "yellow", "running": "cyan"}


def text(run: Run, *, max_lines: int = MAX_LINES) -> str:
    """Return the tree as lines; after `max_lines` it says how many nodes are not shown."""
    return "\n".join(line for line, _ in _lines(run, max_lines))


def rich_text(run: Run, *, max_lines: int = MAX_LINES) -> "Text":
    """Return the same lines in colors, for `rich.console.Console.print`.

    Raises:
        ImportError: rich is not installed; `text` does without.
    """
    from rich.text import Text  # noqa: PLC0415 - an extra

    return Text("\n").join(Text(line, color) for line, color in _lines(run, max_lines))


def label(node: Node) -> str:
    """Return one node in one line: how it ended, its name, and what is to know of it."""
    return f"{_MARKS[node.status]} {_short(node.name)}{''.join(f'  {s}' for s in _said(node))}"


def _said(node: Node) -> Iterator[str]:
    tokens = node.prompt_tokens + node.completion_tokens
    if node.seconds is not None:
        yield f"{node.seconds * 1000:.1f} ms"
    for there, said in (
        (node.status not in {"completed", "failed"}, node.status),
        (tokens, f"{tokens:,} tokens"),
        (node.cost, f"cost {node.cost:.6g}"),
    ):
        if there:
            yield said
    yield from _noted(node)
    if node.pruned:
        yield f"({node.pruned:,} pruned)"


def _noted(node: Node) -> Iterator[str]:
    notes = dict(node.notes)
    if notes.get("attempt") == 1:
        del notes["attempt"]
    for name in ("tier", "operation", "attempt", "decision", "reason"):
        if name in notes:
            yield f"{name} {_short(str(notes[name]))}"
    if notes.get("cached"):
        yield "remembered"
    if node.error:
        yield _short(node.error)


def _short(said: str) -> str:
    line = " ".join(said.split())
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"


def _lines(run: Run, max_lines: int) -> Iterator[tuple[str, str]]:
    """Yield each line with its color, from top to bottom."""
    root = run.root
    if root is None:
        yield f"run {run.id}: no longer kept", ""
        return
    waiting: list[tuple[str, str, Node]] = [("", "", root)]
    for _ in range(max_lines):
        prefix, below, node = waiting.pop()
        yield f"{prefix}{label(node)}", _COLORS.get(node.status, "")
        children = list(node.children.values())
        for place, child in enumerate(reversed(children)):
            last = place == 0
            mark, space = ("└── ", "    ") if last else ("├── ", "│   ")
            waiting.append((below + mark, below + space, child))
        if not waiting:
            return
    yield f"… {len(run.nodes()) - max_lines:,} more nodes", ""


def html(run: Run, *, max_nodes: int = MAX_LINES) -> str:
    """Return the tree as HTML that unfolds; every text in it is escaped."""
    root = run.root
    if root is None:
        return f"<pre>{escape(text(run))}</pre>"
    left = [max_nodes]
    shown = _unfolding(root, left)
    more = len(run.nodes()) - max_nodes
    rest = f"<div>… {more:,} more nodes</div>" if more > 0 else ""
    return f'<div style="font-family:monospace">{shown}{rest}</div>'


def _unfolding(node: Node, left: list[int]) -> str:
    left[0] -= 1
    line = escape(label(node))
    if color := _COLORS.get(node.status):
        line = f'<span style="color:{color}">{line}</span>'
    inner = "".join(_unfolding(c, left) for c in list(node.children.values()) if left[0] > 0)
    if not inner:
        return f'<div style="margin-left:1.2em">{line}</div>'
    opened = " open" if node.depth < 3 else ""
    return f'<details{opened} style="margin-left:1.2em"><summary>{line}</summary>{inner}</details>'
