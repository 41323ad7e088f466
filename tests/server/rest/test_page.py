"""The page, and what it does in a browser; those tests need the extra `browser` and Chromium."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from semcache import PlanCache
from semcache.server.calls import Calls
from semcache.testing import HashEmbedder
from tests.server.rest.conftest import Door

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<img src=x onerror=\"document.title='taken'\"> <script>document.title='taken'</script>"
ORDER = "refund order A-17, it came late"
PLAN = [{"name": "refund", "arguments": {"order": "A-17", "note": HOSTILE}}]


def test_the_page_is_one_file_that_writes_no_data_as_html(door: Door) -> None:
    reply = door("").get("/")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.search(r"script-src 'sha256-[\w+/=]+'; style-src 'sha256-", policy)
    writing = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|DOMParser"
    assert not re.search(rf"{writing}|https?://|\son\w+=[\"']|\sstyle=", reply.text)
    assert "token-0123456789" not in reply.text


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    api = pytest.importorskip(
        "playwright.sync_api", reason="no playwright; pip install 'semcache-plans[browser]'"
    )
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    with api.sync_playwright() as playwright:
        try:
            # Chromium's sandbox does not run as root, as in most containers.
            started = playwright.chromium.launch(
                executable_path=found, chromium_sandbox=os.geteuid() != 0
            )
        except api.Error as error:
            pytest.skip(f"no Chromium that starts: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A page of a browser in which nothing may go wrong unnoticed."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    yield page
    page.close()
    # A refused token is an answer of 401, which the console tells of.
    assert [line for line in wrong if "401" not in line] == []


@pytest.fixture
def orders(serve: Callable[..., Door]) -> Door:
    """A door to a cache of plans that others make, with a hit and two misses."""
    door = serve(Calls(PlanCache.open(embedder=HashEmbedder())))
    cost = {"seconds": 2.0, "prompt_tokens": 900, "completion_tokens": 100}
    door().post("/v1/lookup", json={"prompt": ORDER})
    door().post("/v1/store", json={"prompt": ORDER, "plan": PLAN, **cost})
    door().post("/v1/lookup", json={"prompt": "refund order B-2, it came late"})
    door().post("/v1/lookup", json={"prompt": HOSTILE})
    return door


def signed_in(page: "Page", door: Door, *names: str) -> None:
    page.goto(str(door("").base_url))
    for number, name in enumerate(names or ("acme",)):
        if number:
            page.get_by_role("button", name="Add a token").click()
        page.get_by_label("Token", exact=True).fill(f"{name}-token-0123456789")
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="Overview").wait_for()


def test_figures_of_the_tenant_are_shown(page: "Page", orders: Door) -> None:
    signed_in(page, orders)
    cards = page.locator("#cards")
    cards.get_by_text("33 %").wait_for()
    text = cards.inner_text()
    assert "1 of 3 lookups" in text
    assert "1,000" in text  # tokens
    assert "2.0 s" in text
    assert "template" in page.locator("#hits").inner_text()
    page.locator("#groups").get_by_text("1 prompt", exact=True).click()
    assert '"order": "<order>"' in page.locator("#groups pre").inner_text()


def test_what_prompts_and_plans_say_is_text_and_nothing_else(page: "Page", orders: Door) -> None:
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    signed_in(page, orders)
    for item in page.locator("#recent > details, #groups > details").all():
        item.locator("summary").first.click()
    page.get_by_label("Prompt").fill(HOSTILE)
    page.get_by_role("button", name="Look").click()
    page.locator("#seen .chip").first.wait_for()
    assert page.locator("#recent").get_by_text(HOSTILE, exact=True).count() >= 1
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "semcache"
    assert hosts == {str(orders("").base_url).split("/")[2]}


def test_a_wrong_plan_is_taken_back_by_keyboard(page: "Page", orders: Door) -> None:
    signed_in(page, orders)
    page.locator("#recent summary", has_text="B-2").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Served by the template tier").wait_for()
    page.get_by_role("button", name="Wrong").press("Enter")
    page.get_by_role("button", name="Cancel").wait_for()
    page.keyboard.press("Enter")  # what is asked first is to leave it as it is
    assert page.get_by_text("Judged wrong.").count() == 0
    page.get_by_role("button", name="Wrong").press("Enter")
    page.get_by_role("button", name="It was wrong").press("Enter")
    page.get_by_text("Judged wrong.").wait_for()
    page.get_by_text("No plans yet.").wait_for()
    found = orders().post("/v1/lookup", json={"prompt": "refund order B-2, it came late"})
    assert found.json()["hit"] is False


def test_who_may_only_read_is_shown_no_buttons_that_change(page: "Page", orders: Door) -> None:
    signed_in(page, orders, "reader")
    page.get_by_text("read only").wait_for()
    page.locator("#recent summary", has_text="B-2").click()
    page.get_by_text("Served by the template tier").wait_for()
    assert page.get_by_role("button", name="Wrong").count() == 0


def test_a_what_if_tells_why_and_counts_nothing(page: "Page", orders: Door) -> None:
    signed_in(page, orders)
    page.get_by_label("Prompt").fill("refund order C-3, it came late")
    page.get_by_role("button", name="Look").click()
    seen = page.locator("#seen")
    seen.get_by_text("Served by the template tier").wait_for()
    assert "C-3" in seen.inner_text()
    page.get_by_text("Values that are known already").click()
    page.get_by_label("JSON object").fill("{")
    page.get_by_role("button", name="Look").click()
    page.get_by_text("The values are no JSON object.").wait_for()
    assert orders().get("/v1/stats").json()["lookups"] == 3


def test_each_tenant_has_its_row_and_its_own_data(page: "Page", orders: Door) -> None:
    signed_in(page, orders, "acme", "initech")
    page.get_by_role("heading", name="Tenants").wait_for()
    rows = page.locator("#tenants tr")
    assert [rows.nth(n).locator("td").first.inner_text() for n in (0, 1)] == ["acme", "initech"]
    page.get_by_text("Nobody has asked this process anything yet.").wait_for()
    page.get_by_text("No plans yet.").wait_for()
    page.get_by_label("Tenant", exact=True).select_option("acme")
    page.locator("#recent summary", has_text="B-2").wait_for()
    page.get_by_label("Misses").check()
    page.locator("#recent summary", has_text="B-2").wait_for(state="detached")


def test_a_token_is_asked_for_and_forgotten(page: "Page", orders: Door) -> None:
    page.goto(str(orders("").base_url))
    page.get_by_label("Token", exact=True).fill("nobody-0123456789")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("alert").get_by_text("a bearer token that this server knows").wait_for()
    signed_in(page, orders)
    page.reload()
    page.get_by_role("heading", name="Overview").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.reload()
    page.get_by_label("Token", exact=True).wait_for()
    assert not page.get_by_role("heading", name="Overview").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(
    page: "Page", orders: Door, scheme: Any, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    signed_in(page, orders, "acme", "initech", "acme")
    page.locator("#recent summary", has_text="B-2").click()
    page.get_by_text("Served by the template tier").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    fields = "[...document.querySelectorAll('input,select,textarea')]"
    assert page.evaluate(f"{fields}.filter((one) => !one.labels.length).length") == 0
    if shots := os.environ.get("PAGE_SHOTS"):  # for people to look at
        page.screenshot(path=f"{shots}/{scheme}-{width}.png", full_page=True)
