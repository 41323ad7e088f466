"""A tenant may have any name: nothing of one is served, counted or removed as another's."""

from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from semcache import Hit, PlanCache
from semcache.responses.cache import ABSENT, Responses
from semcache.testing import HashEmbedder
from tests.calling import calling

if TYPE_CHECKING:
    from tests.conftest import Postgres

NAMES = (
    "a", "A", "a/b", "a%2Fb", "a b", " ", "..", ".", "%", "%s", "%(tenant)s", "a_", "a*", "{}",
    "'; DROP TABLE records; --", '"a"', "$1", "\\", "a:b", "r/a", "é", "e\u0301", "ß", "漢", "🙂",
    "NULL", "default", "x" * 256,
)  # fmt: skip
KEY = b64encode(b"k" * 32).decode()
PLACES = ("memory", "disk", "encrypted", "replica", "server")

Open = Callable[[], PlanCache]


@pytest.fixture(params=PLACES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Open the cache of this test, in each kind of place."""
    given: dict[str, Any] = {"directory": tmp_path / "plans"}
    match request.param:
        case "memory":
            given = {}
        case "encrypted":
            pytest.importorskip("cryptography")
            given["encryption_key"] = KEY
        case "replica" | "server":
            server: Postgres = request.getfixturevalue("postgres")
            name = server.schema(tmp_path)
            server.run(f"CREATE DATABASE {name}")
            database = server.dsn.replace("/postgres?", f"/{name}?")
            given = {"database": database, "database_search": request.param}
    return lambda: PlanCache.open(**given, embedder=HashEmbedder())


def served(cache: PlanCache, prompt: str) -> dict[str, str]:
    """Return which operation each tenant is served for `prompt`."""
    found = {name: cache.lookup(prompt, tenant=name) for name in NAMES}
    return {name: hit.plan.operations()[0] for name, hit in found.items() if isinstance(hit, Hit)}


def test_each_is_served_its_own_plan_and_loses_it_alone(opened: Open) -> None:
    own = {name: f"op{number}" for number, name in enumerate(NAMES)}
    with closing(opened()) as cache:
        for name, operation in own.items():
            plan = calling(operation, year=2024)
            cache.store("sales in 2024 by city", plan, params={"year": 2024}, tenant=name)
        assert served(cache, "sales in 2023 by city") == own
        assert served(cache, "please show me the sales in 2021 by city") == own
        assert sorted(cache.tenants()) == sorted(NAMES)
        for name in ("a", "%", "a_", "é"):
            assert cache.clear(tenant=name) == 1
            del own[name]
        assert cache.invalidate(operation=own.pop("a*"), tenant="a*") == 1
        assert cache.invalidate(tag="unknown", tenant="%s") == 0
        assert served(cache, "sales in 2023 by city") == own
        assert {name: cache.stats(tenant=name).entries for name in NAMES} == {
            name: int(name in own) for name in NAMES
        }


@pytest.mark.parametrize("place", ["memory", "disk", "encrypted"])
def test_each_has_its_own_responses_as_a_group_and_as_a_key(place: str, tmp_path: Path) -> None:
    directory = None if place == "memory" else tmp_path / "responses"
    if place == "encrypted":
        pytest.importorskip("cryptography")
    key = KEY if place == "encrypted" else ""
    with closing(Responses.open(directory, encryption_key=key)) as responses:
        for name in NAMES:
            responses.set(name, f"key {name}")
            responses.set(f"of {name}", f"group {name}", group=name)
        assert [responses.get(name) for name in NAMES] == [f"key {name}" for name in NAMES]
        assert [responses.bust_group(name) for name in ("%", "a_", "a*", "é")] == [1, 1, 1, 1]
        left = {name for name in NAMES if responses.get(f"of {name}") is not ABSENT}
        assert left == {*NAMES} - {"%", "a_", "a*", "é"}
        assert responses.bust_prefix("%") == sum(name.startswith("%") for name in NAMES)
        assert responses.get("a") == "key a"
