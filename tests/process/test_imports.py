"""What a call imports late is imported where no interrupt of its caller reaches."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from semcache.process.imports import ensure_imported
from tests.interrupts import interrupted

# An audit hook cannot be taken away again, and only a new process has not imported anything yet.
PROGRAM = """
import sys, threading
from pathlib import Path
from semcache import Hit, PlanCache

caller, here = threading.get_ident(), []

def note(event, told):
    if event == "import" and threading.get_ident() == caller:
        here.append(told[0])

plan = {"operation": "report", "of": "sales", "year": 2024}
cache = PlanCache.open(Path(sys.argv[1]))
late = {"faiss", "onnxruntime"} - {*sys.modules}
sys.addaudithook(note)
cache.store("sales in 2024", plan, params={"year": 2024})
found = cache.lookup("sales in 2019")
cache.lookup("please show me the sales since 3 March 2019")
cache.feedback(found, right=False)
with cache.planning(cache.lookup("tolls in 2019")):
    cache.store("tolls in 2019", plan, params={"year": 2019})
cache.invalidate(operation="report")
cache.close()
print(isinstance(found, Hit), here, sorted(late & {*sys.modules}))
"""


def test_no_call_of_a_cache_imports_anything_on_the_thread_of_its_caller(tmp_path: Path) -> None:
    ran = subprocess.run(  # noqa: S603 - the program above
        [sys.executable, "-c", PROGRAM, str(tmp_path / "plans")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("True [] ['faiss', 'onnxruntime']\n", "")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that nobody has imported yet."""
    name = f"late_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def test_an_interrupt_at_any_line_lets_other_threads_import(package: str) -> None:
    for line in interrupted(lambda: ensure_imported(package)):
        done: list[int] = []

        def use(done: list[int] = done) -> None:
            ensure_imported(package)
            done.append(sys.modules[package].VALUE)

        thread = threading.Thread(target=use, daemon=True)
        thread.start()
        thread.join(timeout=60)
        assert done == [1], line


def test_a_module_is_whole_though_an_interrupt_ends_the_import_of_another_thread(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    gate = ModuleType("gate")
    vars(gate).update(begun=begun, go=go, left=[1])
    monkeypatch.setitem(sys.modules, "gate", gate)
    (tmp_path / f"{package}.py").write_text(
        "import gate\n"
        "while gate.left:\n"
        "    gate.left.pop(), gate.begun.set(), gate.go.wait(60)\n"
        "    raise KeyboardInterrupt\n"
        "VALUE = 1\n",
        encoding="utf-8",
    )

    def interrupted_import() -> None:
        with pytest.raises(KeyboardInterrupt):
            import_module(package)

    threads = [
        threading.Thread(target=work)
        for work in (interrupted_import, partial(ensure_imported, package))
    ]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert sys.modules[package].VALUE == 1


def test_what_cannot_be_imported_is_told_as_by_an_import() -> None:
    with pytest.raises(ModuleNotFoundError) as error:
        ensure_imported("no_such_package_of_anybody")
    assert error.value.name == "no_such_package_of_anybody"
