"""The clock of the machine."""

import time


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Return epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)
