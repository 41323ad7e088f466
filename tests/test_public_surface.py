import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import semcache

PACKAGE = Path(semcache.__file__).parent


def test_the_surface_is_a_sorted_list_without_repetition() -> None:
    assert semcache.__all__ == sorted(set(semcache.__all__))


@pytest.mark.parametrize("name", semcache.__all__)
def test_every_name_of_the_surface_is_there_and_documented(name: str) -> None:
    value = getattr(semcache, name)
    assert getattr(value, "__doc__", None) or name == "Found"
    assert name in dir(semcache)


def test_the_lazy_names_the_typed_names_and_the_surface_are_the_same() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        (alias.name, node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {name for name, _ in typed} == set(semcache.__all__)
    for name, module in typed:
        assert getattr(semcache, name) is getattr(import_module(str(module)), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'PlanCach'"):
        semcache.PlanCach  # noqa: B018 - asking is the test


def test_a_star_import_brings_exactly_the_surface() -> None:
    names: dict[str, object] = {}
    exec("from semcache import *", names)  # noqa: S102 - the statement under test
    assert set(names) - {"__builtins__"} == set(semcache.__all__)


def test_the_version_is_one_that_packagers_read() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", semcache.__version__)


def test_types_are_published() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_the_other_product_of_this_name_beside_it_is_named(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "semcache", ignore=shutil.ignore_patterns("__pycache__"))

    def import_there() -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", "import semcache"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    assert import_there() == (0, "")
    (tmp_path / "semcache-0.1.0.dist-info").mkdir()
    status, said = import_there()
    assert status == 1
    assert "'semcache-0.1.0.dist-info' lies beside 'semcache-plans'" in said
