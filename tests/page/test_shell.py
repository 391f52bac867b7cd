"""The frame of the page: keyboard, theme, the banner while the gateway is away, narrow windows, the broker's views."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import Gateway
from tests.page.conftest import BROWSER, REASON, Page
from tests.page.plant import Speaker

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
VIEWS = {
    "c": "Clients",
    "g": "Shared groups",
    "b": "Bans",
    "p": "Traces",
    "h": "Shards",
    "i": "Settings",
    "a": "Access",
    "o": "Overview",
}


def test_every_view_has_a_key_and_the_help_lists_it(page: Page) -> None:
    browser = page.browser
    page.show("/")
    for key, heading in VIEWS.items():
        browser.press("g")
        browser.press(key)
        browser.sees("main h1", heading)
    browser.press("?")
    for heading in VIEWS.values():
        browser.sees("dialog dd", heading)
    browser.press("Escape")
    browser.sees_no("dialog")


def test_the_theme_is_the_systems_until_another_is_chosen(page: Page) -> None:
    browser = page.browser
    page.show("/")
    light = browser.run(BACKGROUND)
    browser.window(1280, 800, theme="dark")
    dark = browser.run(BACKGROUND)
    assert light != dark
    browser.press("t")
    browser.until("document.documentElement.dataset.theme == 'light'")
    assert browser.run(BACKGROUND) == light
    page.show("/")
    assert browser.run(BACKGROUND) == light, "it is remembered"
    browser.press("t")
    browser.until("document.documentElement.dataset.theme == 'dark'")
    browser.press("t")
    browser.until("!document.documentElement.dataset.theme")
    assert browser.run(BACKGROUND) == dark


def test_while_the_gateway_is_away_the_page_says_so_and_keeps_trying(page: Page) -> None:
    page.allowed.append("ERR_INTERNET_DISCONNECTED")
    browser = page.browser
    page.show("/shards")
    browser.sees("table[aria-label=Shards] td", "ready")
    browser.offline(True)
    browser.sees(".banner", "The gateway does not answer")
    browser.sees("table[aria-label=Shards] td", "ready")
    browser.offline(False)
    browser.sees_no(".banner")
    browser.sees(".health .dot.good")


def test_on_a_narrow_window_nothing_is_cut_off_and_the_views_are_behind_a_button(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    with Speaker(gateway.broker.address.port, "c" * 60, subscribes=[("t/#", 1)]):
        browser.window(400, 800)
        for place in (
            "/",
            "/clients",
            "/groups",
            "/shards",
            "/bans",
            "/traces",
            "/access",
            f"/client?id={'c' * 60}",
        ):
            page.show(place)
            assert browser.run("document.documentElement.scrollWidth") <= 400, place
        browser.sees_no("nav.views")
        browser.click("button.menu")
        browser.click("nav.views a", "Clients")
        browser.sees("main h1", "Clients")
        browser.sees_no("nav.views")


def test_a_shared_group_has_its_members(page: Page, gateway: Gateway) -> None:
    with Speaker(gateway.broker.address.port, "m1", subscribes=[("$share/g/jobs/#", 1)], lasts=False):
        page.show("/groups")
        page.browser.sees("table[aria-label='Shared groups'] td", "$share/g/jobs/#")
        page.browser.click("table[aria-label='Shared groups'] a", "m1")
        page.browser.sees("h1", "m1")


def test_whether_a_client_may_do_something_is_explained(page: Page) -> None:
    browser = page.browser
    page.show("/access")
    browser.fill("input[name=user]", "anna")
    browser.fill("input[name=topic]", "plant/7")
    browser.press("Enter")
    browser.sees(".answer", "anna may publish to plant/7")
    browser.sees(".answer", "There are no rules")


def test_a_drain_is_begun_and_ended(page: Page, gateway: Gateway) -> None:
    page.allowed.append("503")  # of /readyz
    browser = page.browser
    page.show("/shards")
    browser.click(".actions button", "Drain")
    browser.click("dialog button.danger")
    browser.sees("table[aria-label=Shards] td", "draining")
    browser.sees(".health", "not ready")
    browser.click(".actions button", "End the drain")
    browser.click("dialog button.main")
    browser.sees("table[aria-label=Shards] td", "ready")
    browser.sees(".health .dot.good")


def test_the_overview_plots_what_the_gateway_remembers(page: Page, gateway: Gateway) -> None:
    page.show("/?range=300")
    page.browser.until("document.querySelectorAll('.plot canvas').length == 10")
    page.browser.click(".segmented button", "14 d")
    page.browser.until("location.hash.includes('range=1209600')")
    page.browser.sees(".figures", "Connected")
    rows = [url for url in page.browser.requested if "limit=" in url]
    assert all(int(url.partition("limit=")[2].partition("&")[0]) <= 200 for url in rows)


def test_an_address_that_leads_nowhere_says_so(page: Page) -> None:
    page.show("/nothing")
    page.browser.sees("h1", "no such view")


def test_a_search_is_left_by_escape_and_keeps_what_is_typed(page: Page) -> None:
    browser = page.browser
    page.show("/clients")
    browser.press("/")
    browser.type("pump")
    browser.press("Escape")
    browser.until("document.activeElement === document.body")
    assert browser.run("document.querySelector('[data-search]').value") == "pump"


def test_access_says_what_a_token_without_the_role_needs(page: Page) -> None:
    page.sign_in("reader")
    page.show("/access")
    page.browser.sees(".empty", "shown to tokens with the role administer")
    page.browser.sees(".empty", "reader, has read")
    page.browser.sees_no("main", "Loading")
    page.browser.sees_no(".question")


def test_members_of_a_group_are_seen_on_a_narrow_window(page: Page, gateway: Gateway) -> None:
    with Speaker(gateway.broker.address.port, "narrow-member", subscribes=[("$share/n/jobs/#", 1)], lasts=False):
        page.browser.window(400, 800)
        page.show("/groups")
        page.browser.click("table[aria-label='Shared groups'] a", "narrow-member")
        page.browser.sees("h1", "narrow-member")


@pytest.mark.parametrize("width", [1280, 400])
def test_names_of_1500_characters_leave_the_views_usable(page: Page, gateway: Gateway, width: int) -> None:
    browser = page.browser
    name, client = "n" * 1500, "c" * 1000  # as long as a client id may be
    assert gateway.publish({"topic": name, "payload": "x", "qos": 1, "retain": True}).status == 200
    with Speaker(
        gateway.broker.address.port,
        client,
        subscribes=[(f"{name}/#", 1), (f"$share/{name}/t", 1)],
        lasts=False,
    ):
        browser.window(width, 800)
        for place in (
            "/clients", f"/client?id={client}", "/groups", f"/topic?topic={name}", "/topics?sort=rate", "/retained",
        ):  # fmt: skip
            page.show(place)
            browser.sees("main .name", "nnnn" if "topic" in place or place == "/retained" else "cccc")
            assert browser.run("document.documentElement.scrollWidth") <= width, place
            tallest = browser.run(
                "Math.max(0, ...[...document.querySelectorAll('main tbody tr, h1')]"
                ".map((element) => element.getBoundingClientRect().height))"
            )
            assert tallest < 160, (place, tallest)


def test_what_loads_says_so(page: Page) -> None:
    """Answers are held back, as by a slow network."""
    browser = page.browser
    page.show("/")
    browser.run(
        "(() => { const real = window.fetch; window.fetch = (url, ...more) => (String(url).includes('api/v1') ?"
        " new Promise(() => {}) : real(url, ...more)); return true; })()"
    )
    for place in (
        "/topics",
        "/topic?topic=a",
        "/stream?stream=main",
        "/client?id=c",
        "/retained",
        "/groups",
        "/bans",
    ):
        browser.run(f"location.hash = {place!r}")
        browser.sees("main h1")
        browser.sees("main", "Loading …")


def test_the_log_and_the_free_disk_have_an_axis_each(page: Page) -> None:
    """On one axis the log of a large disk is a line at zero."""
    page.show("/?range=300")
    page.browser.sees(".plot .legend", "free")
    titles = page.browser.texts(".plot figcaption > span:first-child")
    assert {"Log on disk", "Free space of the disk"} <= set(titles)


def test_settings_have_their_source(page: Page) -> None:
    browser = page.browser
    page.show("/settings")
    browser.sees("table[aria-label=Settings] td", "log.linger_ms")
    browser.sees("table[aria-label=Settings] td", "allowed: ")
    for applies in ("at a reload", "to new connections, from a reload on", "after a restart"):
        browser.sees("table[aria-label=Settings] td", applies)
    browser.click(".segmented button", "Changed")
    browser.sees("table[aria-label=Settings] td", "gateway.host")
    browser.sees_no("table[aria-label=Settings] td", "log.linger_ms")
    browser.press("/")
    browser.type("nothing like this")
    browser.sees(".empty", "All settings are the defaults")
