"""Names: modules by words of the glossary, a class has its own, and tests leave private ones."""

import ast
import re
from pathlib import Path

import semcache

PACKAGE = Path(semcache.__file__).parent
TESTS = Path(__file__).parent
GLOSSARY = PACKAGE.parent / "docs" / "glossary.md"


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if not path.name.startswith("_"))


def test_modules_are_named_by_words_of_the_glossary() -> None:
    known = set(re.findall(r"[a-z]+", GLOSSARY.read_text(encoding="utf-8").lower()))
    names = {part for path in modules() for part in path.relative_to(PACKAGE).parts}
    words = {word for name in names for word in name.removesuffix(".py").split("_")}
    unknown = {word for word in words if word not in known and word.rstrip("0123456789")}
    assert sorted(unknown) == [], "say in docs/glossary.md what these words mean"


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


OFFERED = {"_asdict", "_exit", "_getframe", "_replace", "_repr_html_", "_repr_mimebundle_"}
"""Names with an underscore that are documented."""
FOREIGN = {"_cleanup"}
"""Private members of other packages: `pgserver` has no other way to be told to clean nothing up."""


def test_no_test_reaches_a_private_member() -> None:
    reached = []
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and re.match(r"_(?!_)", node.attr):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                if node.attr not in OFFERED | FOREIGN and owner not in {"self", "cls"}:
                    reached.append(f"{place}:{node.lineno} {node.attr}")
    assert reached == []
