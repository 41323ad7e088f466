"""Two versions on one directory: what an earlier semcache makes of what this one has written.

    python benchmarks/versions.py [COMMIT]

COMMIT (854ca32, the last one of format 1, by default) is built as a wheel from this repository's
history and installed, with `diskcache` which it needs, into a folder of its own; the rest of what
it needs is taken from this Python. It runs as a process of its own, and opens plans, plans that are
encrypted and responses that this version wrote, and a directory of its own after this version has
opened it. Each must be refused with an error of semcache's, and no file may change.
"""

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

from semcache import Hit, Parameter, PlanCache
from semcache.responses.cache import Responses
from semcache.testing import HashEmbedder

CHECKOUT = Path(__file__).parents[1]
KEY = b64encode(b"k" * 32).decode()
PLAN: dict[str, Any] = {
    "start_node": {"route": "call"},
    "call": {"operation": "report", "input": {"year": "2024"}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.call"}},
}
# Both versions understand it; each line of its answer is a name and what became of it.
EARLIER = """
import json, sys
from pathlib import Path
import semcache
from semcache import PlanCache, Parameter, SemCacheError
from semcache.cache.responses import Responses
from semcache.testing import HashEmbedder

folder, key, plan = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
made = [Parameter("year", "2024", mention="2024")]

def plans(place, **given):
    with PlanCache.open(folder / place, embedder=HashEmbedder(), **given) as cache:
        found = cache.lookup("sales in 2023")
        stored = cache.store("taxes in 2024", plan, params=made)
        return f"served {bool(found)}, stored {bool(stored)}"

def responses():
    with Responses.open(folder / "responses") as kept:
        kept.set("b", 2)
        return f"gave {kept.get('a')}"

def begun():
    with PlanCache.open(folder / "earlier", embedder=HashEmbedder()) as cache:
        cache.store("sales in 2024", plan, params=made)
    return "begun"

def told(work, *given, **more):
    try:
        return work(*given, **more)
    except SemCacheError as error:
        return f"{type(error).__name__}: {error}"

does = {
    "begin": lambda: {"earlier": begun()},
    "open": lambda: {
        "plans": told(plans, "plans"),
        "encrypted": told(plans, "encrypted", encryption_key=key),
        "frozen": told(plans, "plans", frozen=True),
        "responses": told(responses),
        "earlier": told(plans, "earlier"),
    },
}
print(json.dumps({"from": semcache.__file__, **does[sys.argv[4]]()}))
"""


def ran(*command: str, **given: Any) -> bytes:  # noqa: ANN401 - arguments of `subprocess.run`
    """Return what a command printed; one that fails is an error."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, **given)  # noqa: S603 - ours
    printed: bytes = done.stdout
    return printed


def built(commit: str, folder: Path) -> Path:
    """Return a folder to import semcache of `commit` from, installed from its wheel."""
    source, installed = folder / "source", folder / "installed"
    archive = ran(shutil.which("git") or "git", "-C", str(CHECKOUT), "archive", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(source, filter="data")
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    ran(*pip, "wheel", "--no-deps", "-w", str(folder), str(source))
    (wheel,) = folder.glob("semcache*.whl")
    needed = (str(wheel), "diskcache>=5.6.3,<6")
    ran(*pip, "install", "--no-deps", "--target", str(installed), *needed)
    return installed


def asked(installed: Path, folder: Path, what: str) -> dict[str, str]:
    """Return what the earlier version says to each of the places in `folder`."""
    program = (sys.executable, "-c", EARLIER, str(folder), KEY, json.dumps(PLAN), what)
    printed = ran(*program, env={**os.environ, "PYTHONPATH": str(installed)}, cwd=folder)
    said: dict[str, str] = json.loads(printed)
    place = said.pop("from")
    if not Path(place).is_relative_to(installed):
        raise AssertionError(f"it was not the earlier version that ran: {place}")
    return said


def fill(folder: Path) -> None:
    """Write what this version writes: plans, encrypted ones, responses."""
    for name, key in (("plans", ""), ("encrypted", KEY)):
        with PlanCache.open(folder / name, embedder=HashEmbedder(), encryption_key=key) as cache:
            cache.store("sales in 2024", PLAN, params=[Parameter("year", "2024", mention="2024")])
    with closing(Responses.open(folder / "responses")) as responses:
        responses.set("a", 1)


def contents(folder: Path) -> dict[str, str]:
    """Return the hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def served(directory: Path, **given: Any) -> bool:  # noqa: ANN401 - arguments of `open`
    """Return whether this version serves the plan that is kept there."""
    with PlanCache.open(directory, embedder=HashEmbedder(), **given) as cache:
        return isinstance(cache.lookup("sales in 2023"), Hit)


def main() -> int:
    """Print what became of each place; return 1 unless the earlier version refused all of them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("commit", nargs="?", default="854ca32")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        installed, folder = built(given.commit, Path(place)), Path(place) / "kept"
        folder.mkdir()
        asked(installed, folder, "begin")
        taken_over = served(folder / "earlier")
        fill(folder)
        before = contents(folder)
        said = asked(installed, folder, "open")
        changed = sorted({*before.items()} ^ {*contents(folder).items()})
        again = served(folder / "plans") and served(folder / "encrypted", encryption_key=KEY)
    for name, what in said.items():
        print(f"{name:10} {what}")
    print(f"taken over: {taken_over}; files changed: {len(changed)}; served after that: {again}")
    refused = all(": " in what for what in said.values())
    return 0 if refused and taken_over and again and not changed else 1


if __name__ == "__main__":
    sys.exit(main())
