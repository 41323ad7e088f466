"""Packages that a call imports late are imported on a thread that nobody interrupts.

An interrupt (Ctrl-C, an exception raised in another thread) that falls into an import may leave a
lock of CPython's own taken: that of the module, or that of all imports (3.11 to 3.13:
`importlib._bootstrap._get_module_lock` takes it in front of the `try` that gives it back). Then no
other thread imports anything, for ever. So the caller waits here for another thread that imports,
and an interrupt ends no more than the waiting. The thread is a bare one: the locks in which a
`threading.Thread` is started can be left taken by an interrupt as well.
"""

import importlib
import time
from _thread import start_new_thread

from semcache.process.forks import ErrorCapture, Forked, barrier, follow_forks, pauses


class _Import:
    """A module that is being imported, for all who wait for it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.begun = self.over = False
        self.error: BaseException | None = None

    def run(self) -> None:
        """Import it, unless another thread has begun to."""
        if not self.begun:
            self.begun = True
            caught = ErrorCapture()
            with caught:
                self._import()
            self.error = caught.error
            self.over = True

    def _import(self) -> None:
        barrier.enter()  # a child forked meanwhile could never import the module
        try:
            importlib.import_module(self._name)
        finally:
            barrier.leave()


class _Imports(Forked):
    """Imports under way, and those that are over."""

    def __init__(self) -> None:
        self._known: dict[str, _Import] = {}
        follow_forks(self)

    def ensure(self, name: str) -> None:
        """See `ensure_imported`."""
        wanted = self._known.setdefault(name, _Import(name))
        if not wanted.begun:  # its first caller may have been interrupted before the next line
            try:
                start_new_thread(wanted.run, ())
            except RuntimeError:  # there are too many threads, or the interpreter is about to end
                wanted.run()
        for pause_s in pauses():
            if wanted.over:
                break
            time.sleep(pause_s)
        if wanted.error is not None:
            self._known.pop(name, None)  # it may be there another time
            raise wanted.error

    def forked(self) -> None:
        """Begin anew with those under way: their threads are the parent's."""
        self._known = {name: known for name, known in self._known.items() if known.over}


_IMPORTS = _Imports()


def ensure_imported(name: str) -> None:
    """Import a module, so that an `import` of it takes no lock from now on.

    Raises:
        ImportError: it cannot be imported, or fails while it is.
    """
    _IMPORTS.ensure(name)
