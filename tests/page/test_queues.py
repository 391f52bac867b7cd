"""Queues in a browser: listed, created, pushed to, looked at, purged, their dead letters sent back, deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import Gateway, started
from tests.page import queue_scene
from tests.page.browser import Browser
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page
from tests.page.queue_scene import HOSTILE, asked

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
QUEUES, CHANNELS = "table[aria-label=Queues]", "table[aria-label=Channels]"
MESSAGES, DEAD = "table[aria-label=Messages]", "table[aria-label='Dead letters']"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("queues"), "queues.enabled=true")
    queue_scene.fill(made)
    yield made
    assert not made.broker.named("gateway.failed")
    made.broker.end()


def press(browser: Browser, button: str, verb: str, **fields: str) -> None:
    """Open the dialog of an action in the heading, fill it, confirm it."""
    browser.click(".heading .actions button", button)
    browser.sees("dialog .explain")
    for name, text in fields.items():
        browser.fill(f"dialog #field-{name}", text)
    browser.click("dialog .buttons button", verb)
    browser.sees_no("dialog")


def test_the_list_has_depth_consumers_and_dead_letters_and_opens_a_queue(page: Page) -> None:
    browser = page.browser
    page.show("/queues")
    browser.sees(f"{QUEUES} td", "news")
    assert [row.split()[0] for row in browser.texts(f"{QUEUES} tbody tr")] == [
        "comments", "news", "orders",
    ]  # fmt: skip
    browser.click(f"{QUEUES} td", "orders")
    browser.sees("h1", "orders")
    browser.sees(f"{CHANNELS} td", "billing")
    browser.sees(".figures dd", "2")


def test_a_queue_is_found_by_a_part_of_its_label(page: Page) -> None:
    browser = page.browser
    page.show("/queues")
    browser.sees(f"{QUEUES} td", "comments")
    browser.press("/")
    browser.type("NEW")
    browser.sees_no(f"{QUEUES} td", "comments")
    browser.sees(f"{QUEUES} td", "news")
    browser.sees(f"{QUEUES} td", "news.dead")


def test_a_queue_is_created_pushed_to_looked_at_purged_and_deleted(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    page.show("/queues")
    press(browser, "New queue", "Create", label="Fresh", records_max="5")
    browser.sees(".toast", "Queue fresh is there")
    browser.click(f"{QUEUES} td", "fresh")
    browser.sees(".figures", "of at most 5")
    browser.click(".panel button", "New channel")
    browser.fill("dialog #field-id", "Readers")
    browser.click("dialog .buttons button", "Create")
    browser.sees(f"{CHANNELS} td", "readers")
    press(browser, "Push", "Push", payload='{"a": 1}', topic="Sports", key="k")
    browser.sees(".toast", "Pushed")
    browser.click(f"{MESSAGES} td", "sports")
    browser.sees(f"{MESSAGES} .detail pre", '"a": 1')
    browser.sees(f"{MESSAGES} .detail dd", "1@sports")
    press(browser, "Purge", "Purge")
    browser.sees(".toast", "1 message dropped")
    given = asked(gateway, "GET", "channels/readers/messages?consumer=me")
    assert given["messages"] == []
    press(browser, "Delete", "Delete")
    browser.sees("h1", "Queues")
    browser.sees_no(f"{QUEUES} td", "fresh")


def test_dead_letters_are_shown_with_their_origin_and_sent_back(page: Page) -> None:
    browser = page.browser
    page.show("/queue?label=orders")
    browser.click(f"{DEAD} tbody tr")
    browser.sees(f"{DEAD} .detail dd", "1@eu")
    browser.click(".panel button", "Redrive")
    browser.click("dialog .buttons button", "Redrive")
    browser.sees(".toast", "1 message pushed back")


def test_names_and_payloads_that_mean_harm_are_text(page: Page, gateway: Gateway) -> None:
    label = "%3Cimg src=x onerror='alert(1)'%3E".replace(" ", "%20")
    asked(gateway, "POST", f"queues/{label}")
    asked(gateway, "POST", f"queues/{label}/messages", {"payload": HOSTILE, "key": HOSTILE, "topic": HOSTILE})
    browser = page.browser
    page.show("/queues")
    browser.sees(f"{QUEUES} td", "onerror")
    page.show(f"/queue?label={label}")
    browser.sees(f"{MESSAGES} td", "alert(1)")
    assert browser.run("document.querySelectorAll('main script, main img').length") == 0


def test_who_may_only_read_is_offered_nothing_and_what_is_not_there_is_said(page: Page) -> None:
    browser = page.browser
    page.allowed.append("404")
    page.sign_in("reader")
    page.show("/queue?label=news")
    browser.sees(f"{MESSAGES} td", "match 0")
    assert browser.texts(".heading .actions button") == [] and browser.texts(f"{CHANNELS} button") == []
    page.show("/queue?label=nothing")
    browser.sees("main .empty", "There is no such queue")


def test_a_narrow_window_shows_all_of_it_without_scrolling_sideways(page: Page) -> None:
    browser = page.browser
    browser.window(390, 800, theme="dark")
    for place in ("/queues", "/queue?label=news", "/queue?label=orders"):
        page.show(place)
        browser.sees("main table td")
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), place


def test_a_broker_without_queues_says_what_to_do(page: Page, chromium: Browser, tmp_path_factory: object) -> None:
    made = started(tmp_path_factory.mktemp("none"))  # type: ignore[attr-defined]
    other = Page(chromium, made)
    page.allowed.append("404")
    try:
        other.sign_in()
        other.show("/queues")
        other.browser.sees(".fault", "queues.enabled = true")
    finally:
        page.sign_in()
        chromium.requested.clear()
        made.broker.end()
