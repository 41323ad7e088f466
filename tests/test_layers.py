"""The layers of DESIGN section 4, as a table that fails by naming the arrow that is too many."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import semcache

PACKAGE = Path(semcache.__file__).parent

LEAVES = {"errors", "canonical", "process", "secrecy", "schemas"}
VALUES = LEAVES | {"events", "catalog", "plans"}
TEXTS = VALUES | {"prompts", "binding"}
PORTS = TEXTS | {"ports"}
# A room may import what stands in its row, and itself. Inside one brace of the design the arrows
# that are needed are named here, and `test_the_table_has_no_cycle` keeps them one-way.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"secrecy"},
    "canonical": {"errors"},
    "schemas": {"errors", "canonical"},
    "events": LEAVES,
    "process": set(),
    "secrecy": {"process"},
    "files": {"errors"},
    "catalog": LEAVES,
    "plans": LEAVES | {"catalog"},
    "prompts": LEAVES | {"catalog"},
    "binding": LEAVES | {"catalog", "plans", "prompts"},
    "settings": LEAVES | {"files"},
    "ports": TEXTS,
    "matching": PORTS,
    "cache": PORTS | {"matching", "settings", "files"},
    "responses": PORTS | {"cache", "settings"},
    "runs": PORTS,
    "planners": PORTS | {"runs"},
    "execution": PORTS | {"runs"},
    "stores": PORTS | {"files"},
    "models": PORTS,
    "sources": PORTS | {"files"},
    "semcache": PORTS | {"cache", "execution", "planners", "responses", "runs", "settings"},
    "wiring": PORTS
    | {"matching", "cache", "planners", "execution", "stores", "models", "sources", "settings"}
    | {"responses", "runs", "semcache"},
    "aio": PORTS | {"cache", "runs", "semcache"},
    "integrations": PORTS | {"aio", "cache", "responses"},
    "testing": PORTS,
    "explore": PORTS | {"matching", "cache", "files", "settings"},
    "demo": PORTS | {"semcache", "wiring", "sources", "cache", "settings"},
    "telemetry": PORTS,
    "upkeep": PORTS | {"matching", "cache", "stores", "explore", "models", "files"},
    "server": PORTS | {"cache", "runs", "semcache", "telemetry"},
    "commands": PORTS
    | {"upkeep", "stores"}
    | {"server", "runs", "semcache", "wiring", "sources", "cache", "settings", "demo", "explore"}
    | {"planners", "files", "responses", "telemetry"},
}
# `open` of `PlanCache`, `Responses` and `SemCache` are the doors that the contract names; they ask
# wiring, which alone knows who implements what, when they are called and not before.
DOORS = {("cache", "wiring"), ("responses", "wiring"), ("semcache", "wiring")}


def rooms() -> list[str]:
    names = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir()}
    return sorted(n for n in names if not n.startswith(("_", ".")) and n != "py")


def imported(room: str) -> set[tuple[str, bool]]:
    """Return (room, at top level) for each import of a room of semcache."""
    path = PACKAGE / room
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    found = set()
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            for name in _modules(node):
                parts = name.split(".")
                if parts[0] == "semcache" and len(parts) > 1:
                    found.add((parts[1], node in tree.body))
    return found


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        if node.module == "semcache":
            return [f"semcache.{alias.name}" for alias in node.names]
        return [node.module]
    return []


@pytest.mark.parametrize("room", [r for r in rooms() if r != "py.typed"])
def test_a_room_imports_only_what_its_row_allows(room: str) -> None:
    assert room in MAY_IMPORT, f"{room} has no row in the table of layers"
    doors = {(name, False) for frm, name in DOORS if frm == room}
    extra = {n for n, top in imported(room) - doors if n not in MAY_IMPORT[room] | {room}}
    assert not extra, f"{room} imports {sorted(extra)}"


def test_a_folder_holds_a_dozen_modules_at_most_and_lies_three_deep_at_most() -> None:
    folders: dict[str, int] = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        assert len(place.parts) <= 3, place
        folders[place.parent.as_posix()] = folders.get(place.parent.as_posix(), 0) + (
            path.name != "__init__.py"
        )
    large = {name: held for name, held in folders.items() if held > 12}
    assert large == {}


def test_the_table_has_no_cycle() -> None:
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


@pytest.mark.parametrize("room", ["prompts", "plans", "binding", "catalog", "matching"])
def test_a_pure_room_does_no_io(room: str) -> None:
    forbidden = {
        "os",
        "io",
        "pathlib",
        "socket",
        "sqlite3",
        "time",
        "random",
        "subprocess",
        "tempfile",
    }
    for file in (PACKAGE / room).rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {m.split(".")[0] for node in ast.walk(tree) for m in _all_modules(node)}
        assert not names & forbidden, f"{file.name} imports {sorted(names & forbidden)}"


def _all_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
