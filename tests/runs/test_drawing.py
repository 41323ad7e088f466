import re
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from semcache.runs.drawing import html, rich_text, text
from semcache.runs.run_context import node


def drawn(desk: Any) -> Any:
    with desk.run("How many <b>sales</b>?") as top, node("plan"):
        with node("ask", "operation") as asked:
            asked.note(operation="query")
            desk.clock.advance(0.0125)
        with pytest.raises(ValueError, match="nothing"), node("check"):
            raise ValueError("nothing")
    return desk.runs.get(top.id)


def test_a_run_prints_as_a_tree(desk: Any) -> None:
    assert str(drawn(desk)).splitlines() == [
        "✓ How many <b>sales</b>?  12.5 ms",
        "└── ✓ plan  12.5 ms",
        "    ├── ✓ ask  12.5 ms  operation query",
        "    └── ✗ check  0.0 ms  ValueError: nothing",
    ]


def test_html_escapes_what_users_wrote(desk: Any) -> None:
    shown = drawn(desk)._repr_html_()
    assert "<b>" not in shown
    assert "How many &lt;b&gt;sales&lt;/b&gt;?" in shown
    assert shown.count("<details") == shown.count("</details>") == 2


def test_rich_shows_the_same_lines_in_colors(desk: Any) -> None:
    run = drawn(desk)
    out = StringIO()
    Console(file=out, width=120, force_terminal=True).print(rich_text(run))
    assert re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()) == f"{run}\n"
    assert "\x1b[31m    └── ✗ check" in out.getvalue()


def test_a_large_tree_is_drawn_up_to_a_limit_and_says_what_is_left(desk: Any) -> None:
    with desk.run("top") as top:
        for number in range(5000):
            with node(f"part {number}"):
                pass
    run = desk.runs.get(top.id)
    assert text(run, max_lines=10).splitlines()[-1] == "… 4,991 more nodes"
    assert "4,991 more nodes" in html(run, max_nodes=10)


def test_a_run_that_is_no_longer_kept_says_so(make_desk: Any) -> None:
    desk = make_desk(max_nodes=2)
    with desk.run("outer"):
        with desk.run("first") as top:
            pass
        run = desk.runs.get(top.id)
        with desk.run("second"):
            pass
    assert str(run) == f"run {top.id}: no longer kept"
    assert "no longer kept" in run._repr_html_()
    assert run.to_dict() == {"id": top.id}
