"""The clock of the machine."""

import time


class SystemClock:
    """The machine's own time; functions of `time`, as each lookup asks for it a dozen times."""

    now = staticmethod(time.time)
    """Return epoch seconds."""
    monotonic = staticmethod(time.perf_counter)
    """Return seconds that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)
