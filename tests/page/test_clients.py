"""Clients on the page: slow ones are found with the reason, and disconnected, reset, banned, traced, dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.gateway.conftest import Gateway
from tests.page.browser import Browser
from tests.page.conftest import BROWSER, REASON, Page
from tests.page.plant import HOSTILE, Speaker

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
SLOW = "table[aria-label='Slow consumers'] tr"
Connect = Callable[..., Speaker]


@pytest.fixture
def connect(gateway: Gateway) -> Iterator[Connect]:
    """Makes clients of the broker. Their sessions are dropped at the end of the test."""
    with ExitStack() as ends:

        def made(client_id: str, **more: object) -> Speaker:
            speaker = ends.enter_context(Speaker(gateway.broker.address.port, client_id, **more))  # type: ignore[arg-type]
            ends.callback(drop, gateway, client_id)
            return speaker

        yield made


def drop(gateway: Gateway, client_id: str) -> None:
    answer = gateway.ask("POST", "/api/v1/actions/drop", {"client": client_id})
    assert answer.status in (200, 404), answer  # 404: the test has ended the session


def publish(gateway: Gateway, topic: str, count: int, size: int = 4) -> None:
    messages = [{"topic": topic, "payload": "x" * size, "qos": 1} for _ in range(count)]
    assert gateway.publish(*messages).status == 200


def confirm(browser: Browser, action: str, button: str) -> None:
    """Open the dialog of an action, and confirm it as it stands."""
    browser.click(".actions button", action)
    browser.sees("dialog .explain")
    browser.click("dialog .buttons button", button)


def test_slow_consumers_come_first_each_with_its_reason(page: Page, gateway: Gateway, connect: Connect) -> None:
    connect("away", subscribes=[("s/#", 1)]).leave()
    connect("silent", subscribes=[("s/#", 1)], acknowledges=False, receive_maximum=5)
    connect("deaf", subscribes=[("s/#", 0)], reads=False)
    connect("quick", subscribes=[("else/#", 1)])
    # More than the buffers of a socket take.
    for _ in range(10):
        publish(gateway, "s/1", 8, 256 * 1024)
    page.show("/")
    page.browser.sees(SLOW, "It is not connected")
    page.browser.sees(SLOW, "It does not acknowledge: all 5 messages are in flight")
    page.browser.sees(SLOW, "It does not read its connection")
    assert not any("quick" in row for row in page.browser.texts(SLOW))
    page.browser.click(SLOW, "silent")
    page.browser.sees("h1", "silent")
    page.browser.sees("table[aria-label='In flight'] td", "PUBACK")
    assert len(page.browser.texts("table[aria-label='In flight'] tbody tr")) == 5


def test_what_waits_is_what_the_filters_match_and_the_remedy_is_beside_it(
    page: Page, gateway: Gateway, connect: Connect
) -> None:
    browser = page.browser
    connect("counted", subscribes=[("w8/mine/#", 1)]).leave()
    publish(gateway, "w8/else", 25)
    publish(gateway, "w8/mine/1", 4)
    page.show("/")
    browser.sees(SLOW, "at most 29 messages wait for it")
    browser.sees(f"{SLOW} .remedy", "drop its session")
    page.show("/client?id=counted")
    browser.sees(".state", "4 messages wait for it in the log")
    browser.sees(".figures dd", "of 29 records behind")
    browser.sees("table[aria-label='Waits for it'] td", "w8/mine/1")
    browser.click(".state button", "Skip")
    browser.sees("dialog", "will not be sent to it")
    browser.press("Escape")
    browser.sees_no("dialog")


def test_warnings_have_human_units_and_what_to_do(page: Page, gateway: Gateway, connect: Connect) -> None:
    browser = page.browser
    bad = connect("bad")
    bad.say(wire.publish("wild/#", b"x", 1, 1))
    bad.take(Kind.DISCONNECT)
    page.show("/")
    browser.sees(".report", "client.refused")
    browser.sees(".report .remedy", "correct the client")
    browser.click(".report .remedy a", "Bans")
    browser.sees("h1", "Bans")
    page.show("/events?level=warning&event=client.refused")
    browser.click("table.events tbody tr")
    browser.sees(".detail dt", "what helps")


def test_a_forecast_says_whose_rate_it_is_and_what_happens_then(page: Page) -> None:
    """The status of the broker is one in which the disk fills: no test fills one."""
    page.show("/")
    page.browser.sees(".health", "up ")
    page.browser.run(
        "import('/page/parts/status.js').then(({status}) => { const real = status.set; const was = status.get();"
        " status.set = () => {}; real({...was, data: {...was.data, disk: {...was.data.disk, bytes_per_second: 12582912,"
        " full_in_seconds: 4440, then: 'the oldest segments go', free_wanted: 1073741824}}}); return true; })"
    )
    page.browser.sees("#forecast", "In 1 h 14 min the oldest segments go")
    shown = page.browser.text("#forecast")
    assert "other programs too, has used 12.0 MiB/s" in shown and "only 1.00 GiB are free then" in shown
    page.browser.sees(".figures dd", "oldest go in 1 h 14 min")
    page.browser.click("#forecast a", "Streams")
    page.browser.sees("h1", "Streams")


def test_a_place_is_reset_to_the_end(page: Page, gateway: Gateway, connect: Connect) -> None:
    connect("late", subscribes=[("r/1", 1)]).leave()
    publish(gateway, "r/1", 30)
    page.show("/client?id=late")
    confirm(page.browser, "Reset place", "Reset its place")
    page.browser.sees(".toast", "1 subscription starts again at latest")
    page.browser.sees(".figures dd", "0")
    page.browser.until("document.querySelector('.figures dd').firstChild.textContent == '0'")
    assert gateway.get("client?client=late")["client"]["behind_records"] == 0


def test_a_place_is_reset_to_an_offset_of_one_subscription(page: Page, gateway: Gateway, connect: Connect) -> None:
    connect("two", subscribes=[("q/1", 1), ("q/#", 1)]).leave()
    publish(gateway, "q/1", 30)
    page.show("/client?id=two")
    page.browser.click("tr:has(td:first-child) .small", "Reset")
    page.browser.click("dialog input[value=offset]")
    page.browser.fill("#field-offset", "28")
    page.browser.click("dialog button.main")
    page.browser.sees(".toast, dialog [role=alert]")
    found = {row["filter"]: row for row in gateway.get("client?client=two")["subscriptions"]}
    kinds = {found["q/1"]["kind"], found["q/#"]["kind"]}
    # The first row is one of the two: with the wildcard the broker refuses, and the dialog says why.
    assert kinds == {"live", "replay"} or "one topic" in page.browser.text("dialog [role=alert]")


def test_a_refused_reset_stays_in_the_dialog_with_the_reason(page: Page, gateway: Gateway, connect: Connect) -> None:
    page.allowed.append("400")
    connect("wild", subscribes=[("w/#", 1)]).leave()
    page.show("/client?id=wild")
    page.browser.click(".actions button", "Reset place")
    page.browser.click("dialog input[value=offset]")
    page.browser.click("dialog button.main")
    page.browser.sees("dialog [role=alert]", "the filter has a wildcard")
    page.browser.press("Escape")
    page.browser.sees_no("dialog")


def test_a_client_is_disconnected_and_its_session_stays(page: Page, connect: Connect) -> None:
    client = connect("victim", subscribes=[("d/#", 1)])
    page.show("/client?id=victim")
    confirm(page.browser, "Disconnect", "Disconnect")
    client.take(Kind.DISCONNECT)
    page.browser.sees(".toast", "1 connection closed")
    page.browser.sees(".state", "It is not connected")
    page.browser.sees_no(".actions button", "Disconnect")


def test_a_session_is_dropped(page: Page, gateway: Gateway, connect: Connect) -> None:
    connect("gone", subscribes=[("d/#", 1)]).leave()
    page.show("/client?id=gone")
    confirm(page.browser, "Drop session", "Drop the session")
    page.browser.sees(".toast", "1 session deleted")
    page.browser.sees(".empty", "no session with this client id")
    assert gateway.ask("GET", "/api/v1/client?client=gone").status == 404


def test_a_client_is_banned_and_the_ban_is_lifted(page: Page, gateway: Gateway, connect: Connect) -> None:
    client = connect("noisy")
    page.show("/client?id=noisy")
    confirm(page.browser, "Ban", "Ban")
    client.take(Kind.DISCONNECT)
    page.browser.sees(".toast", "Banned for 10 minutes")
    page.show("/bans")
    page.browser.sees("table[aria-label=Bans] td", "noisy")
    page.browser.click("table[aria-label=Bans] button", "Lift")
    page.browser.click("dialog button.main")
    page.browser.sees(".empty", "Nobody is banned")
    assert gateway.get("bans")["bans"] == []


def test_packets_of_a_traced_client_are_shown_live(page: Page, gateway: Gateway, connect: Connect) -> None:
    client = connect("talker")
    page.show("/client?id=talker")
    confirm(page.browser, "Trace", "Trace")
    page.browser.sees(".empty", "Waiting for a packet")
    client.say(wire.publish("x/<b>", b"secret", 1, 7))
    client.take(Kind.PUBACK)
    page.browser.sees("table[aria-label=Packets] td", "x/<b>")
    page.browser.sees("table[aria-label=Packets] td", "PUBACK")
    assert "secret" not in page.browser.text("main")
    page.show("/traces")
    page.browser.click("table[aria-label=Traces] button", "End")
    page.browser.click("dialog button.main")
    page.browser.sees(".empty", "Nothing is traced")


def test_clients_are_searched_sorted_and_paged_by_the_broker(page: Page, connect: Connect) -> None:
    for number in range(52):
        connect(f"many-{number:02}")
    rows = "table[aria-label=Clients] tbody tr"
    page.show("/clients?client=many")
    page.browser.sees(rows, "many-49")
    page.browser.sees(".paging", "1 to 50 of 52")
    page.browser.click(".paging button", "Next")
    page.browser.sees(rows, "many-51")
    assert len(page.browser.texts(rows)) == 2
    page.browser.press("/")
    page.browser.type("many-1?")
    page.browser.sees(".paging", "10 in all")
    page.browser.click("th button", "Lag")
    page.browser.sees("th[aria-sort=descending]", "Lag")
    assert "sort=lag" in page.browser.run("location.hash")
    asked = [url for url in page.browser.requested if "/clients?" in url and "limit" in url]
    assert asked and all("limit=50" in url or "limit=8" in url for url in asked)


def test_all_clients_that_match_are_disconnected_or_dropped(page: Page, gateway: Gateway, connect: Connect) -> None:
    browser = page.browser
    clients = [connect(f"fleet-{number}", subscribes=[("f/#", 1)]) for number in range(3)]
    connect("bystander")
    page.show("/clients?client=fleet-")
    browser.click(".actions button", "All that match")
    browser.sees("dialog .explain", "3 sessions match now")
    browser.click("dialog button.danger", "Disconnect them")
    browser.sees(".toast", "3 clients disconnected")
    for client in clients:
        client.take(Kind.DISCONNECT)
    browser.click(".actions button", "All that match")
    browser.click("dialog input[value=drop]")
    browser.click("dialog button.danger", "Drop 3 sessions")
    browser.sees(".toast", "3 clients dropped")
    browser.sees(".empty", "No session matches")
    left = [row["client_id"] for row in gateway.get("clients")["clients"] if row["connected"]]
    assert "bystander" in left and not any(name.startswith("fleet") for name in left)
    page.show("/clients")
    browser.sees_no(".actions button", "All that match")


def test_a_client_is_found_and_disconnected_by_keyboard_alone(page: Page, connect: Connect) -> None:
    browser = page.browser
    connect("other")
    client = connect("keyed")
    page.show("/")
    for key in ("g", "c"):
        browser.press(key)
    browser.sees("h1", "Clients")
    browser.press("/")
    browser.until("document.activeElement.type == 'search'")
    browser.type("key")
    browser.sees(".paging", "1 in all")
    for _ in range(20):
        browser.press("Tab")
        if browser.run("document.activeElement.tagName") == "TR":
            break
    browser.press("Enter")
    browser.sees("h1", "keyed")
    browser.sees(".actions button", "Disconnect")
    for _ in range(40):
        browser.press("Tab")
        if browser.run("document.activeElement.textContent").startswith("Disconnect"):
            break
    browser.press("Enter")
    browser.until("document.activeElement.textContent == 'Cancel'")
    browser.press("Tab")
    browser.press("Enter")
    client.take(Kind.DISCONNECT)
    browser.sees(".toast", "1 connection closed")


@pytest.mark.parametrize("name", [HOSTILE, '"><img src=x onerror=alert(1)>', "{{7*7}}${7*7}", "\u200f\u2066pu\u2069mp"])
def test_names_that_mean_harm_are_text(name: str, page: Page, gateway: Gateway, connect: Connect) -> None:
    connect(name, subscribes=[(f"h/{name}/#", 1), ("$share/<i>g/h", 0)]).leave()
    publish(gateway, f"h/{name}", 3)
    page.browser.run("window.alert = () => { throw new Error('a script ran') }")
    for place in ("/", "/clients?sort=lag", "/groups"):
        page.show(place)
        page.browser.sees("bdi.name")
    page.show("/clients?sort=lag")
    page.browser.click("tbody tr:first-child td:first-child")
    page.browser.sees(".actions button", "Drop session")
    shown = page.browser.text("h1")
    assert not any(sign in shown for sign in "\u202e\u200f\u2066\u2069")
    assert "49" not in shown and page.browser.run("document.querySelectorAll('main script, main img').length") == 0
    confirm(page.browser, "Drop session", "Drop the session")
    page.browser.sees(".empty", "no session with this client id")
    assert not any(row["client_id"] == name for row in gateway.get("clients")["clients"])
