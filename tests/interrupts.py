"""An interrupt at every line: what Ctrl-C or an exception raised in a thread can do, one by one."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import semcache

PACKAGE = str(Path(semcache.__file__).parent)


def interrupted(
    work: Callable[[], object],
    *,
    error: type[BaseException] = KeyboardInterrupt,
    within: str = PACKAGE,
    step: int = 1,
) -> Iterator[int]:
    """Run `work` again and again, interrupted at one later line of the package each time.

    Yield the number of the line after each run that was interrupted; end with the run that was not.
    """
    at = 1
    while _run(work, at, error, within):
        yield at
        at += step


def _run(work: Callable[[], object], at: int, error: type[BaseException], within: str) -> bool:
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(within):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise error
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except error:
        return True
    finally:
        sys.settrace(before)
    return left <= 0  # interrupted, and somebody swallowed it
