"""What the ablation takes out is there to be taken out."""

import contextlib
from typing import Any


def test_each_part_of_matching_can_be_left_out(script: Any) -> None:
    parts = script("ablation").PARTS
    assert len(parts) > 10
    for without in parts.values():
        with contextlib.ExitStack() as stack:
            without(stack)  # raises where what it replaces has another name by now
