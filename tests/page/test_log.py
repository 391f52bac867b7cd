"""Streams, segments, exports, cluster and events in a browser, and what a person may do there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.conftest import Gateway, started
from tests.page import scene
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
SEGMENTS = "table[aria-label=Segments] tbody tr"
EVENTS = "table.events tbody tr"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("log"), f"log.export_to={lake}", "shards.count=2")
    scene.publish(made, scene.readings(20))
    yield made
    made.broker.end()


def test_a_segment_is_sealed_and_trimmed_after_its_loss_was_explained(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    page.show("/streams")
    browser.sees("figcaption", "Log on disk")
    browser.click("tbody tr", "main")
    browser.sees("h1", "Stream main")
    busy = max(gateway.get("partitions")["partitions"], key=lambda row: row["next_lsn"])
    number, end = busy["partition"], busy["next_lsn"]
    browser.click("table[aria-label=Partitions] tbody tr td:nth-child(4)", f"{end:,}")
    browser.sees("h2", f"Segments of partition {number}")
    browser.click(f"table[aria-label=Partitions] tbody tr:nth-child({number + 1}) button", "Seal")
    browser.sees("dialog", "Nothing is lost")
    browser.press("Enter")
    browser.sees(".toast", "The segment is sealed")
    browser.sees(SEGMENTS, "sealed")
    browser.click(f"{SEGMENTS} button", "Trim")
    browser.sees("dialog .explain", f"{end:,} records")
    browser.sees("dialog .explain", "cannot be undone")
    browser.press("Escape")
    browser.sees_no("dialog")  # else the next click may only close it, or find its button
    assert gateway.get("segments")["segments"][-1]["base_lsn"] == 0
    browser.click(f"{SEGMENTS} button", "Trim")
    browser.click("dialog button.danger", "Trim")
    # Whether it may go yet depends on whether the journal has the retained states already; they stay in both cases.
    browser.sees(".toast", "removed")
    assert len(gateway.get("retained", token="ops")["messages"]) == 24


def test_exports_show_how_far_they_are(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    for row in gateway.get("partitions")["partitions"]:
        gateway.act("seal", stream="main", partition=row["partition"])
    page.show("/exports")
    browser.sees("table[aria-label=Exports] tr", "main 1")
    browser.sees(".tag", "up to date")
    browser.sees(".progress", "100 %")


def test_a_broker_alone_says_so(page: Page) -> None:
    page.allowed.append("api/v1/cluster")
    page.show("/cluster")
    page.browser.sees(".panel", "This broker is alone")


def test_events_come_live_and_open_their_fields(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    page.show("/events?event=admin.*")
    gateway.act("ban", kind="client", name="<b>evil</b>", seconds=60)
    browser.sees(EVENTS, "action=ban")
    browser.click(EVENTS, "action=ban")
    browser.sees(".detail dd", '{"kind":"client","name":"<b>evil</b>"')
    browser.press("Enter")
    browser.sees_no(".detail")
    browser.press("p")
    browser.sees("#pause", "Continue")
    gateway.act("unban", kind="client", name="<b>evil</b>")
    browser.press("p")
    browser.sees(EVENTS, "action=unban")  # what happened meanwhile is not lost
    browser.fill("[data-search]", "listener")
    browser.sees(EVENTS, "listener.bound")
    browser.sees_no(EVENTS, "admin.action")
    browser.click("button", "Errors")
    browser.sees(".empty", "No event of this kind")


def test_a_reader_is_offered_no_actions(page: Page) -> None:
    page.sign_in("reader")
    page.show("/stream?stream=main")
    page.browser.sees(SEGMENTS)
    page.browser.sees(".who", "reader")
    page.browser.sees_no("button", "Seal")


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("place", ["/topics", "/retained", "/streams", "/exports", "/events", "/cluster"])
def test_no_view_is_wider_than_its_window(page: Page, place: str, theme: str, width: int) -> None:
    page.allowed.append("api/v1/cluster")
    page.browser.window(width, 800, theme=theme)
    page.show(place)
    page.browser.sees("main td, main .empty, main .panel")
    assert page.browser.run("document.documentElement.scrollWidth <= innerWidth")


def test_an_error_on_the_page_is_noticed(page: Page) -> None:
    """Of a script, of the policy: what the other tests rely on."""
    browser = page.browser
    page.show("/cluster")
    browser.went_wrong()
    browser.run("setTimeout(() => { throw new Error('planted') })")
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    )
    wrong = " ".join(browser.went_wrong())
    assert "planted" in wrong and "Content Security Policy" in wrong
    assert browser.run("window.ran") is None
