"""Names: modules are named by words of the glossary, and a class has its name for itself."""

import ast
import re
from pathlib import Path

import semcache

PACKAGE = Path(semcache.__file__).parent
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
