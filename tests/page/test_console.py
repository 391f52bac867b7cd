"""The MQTT console in a browser: it subscribes, publishes, replays and decodes, and says why something is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import Gateway, started
from tests.page import scene
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
MESSAGES = ".messages tbody tr"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("console"))
    scene.publish(made, scene.readings(20))
    yield made
    made.broker.end()


def connected(page: Page, place: str = "/console") -> None:
    page.show(place)
    page.browser.sees("#connection", "connected")
    page.browser.sees_no("#connection", "not connected")


def subscribe(page: Page, topic_filter: str, start: str = "") -> None:
    browser = page.browser
    browser.fill("#subscribe input[name=filter]", topic_filter)
    browser.choose("#subscribe select[name=start]", start)
    browser.click("#subscribe button[type=submit]")


def publish(page: Page, topic: str, payload: str) -> None:
    browser = page.browser
    browser.fill("#publish input[name=topic]", topic)
    browser.fill("#publish textarea[name=payload]", payload)
    browser.click("#publish button[type=submit]")


@pytest.mark.parametrize("version", ["5", "4"])
def test_it_publishes_and_gets_what_it_subscribed(page: Page, version: str) -> None:
    browser = page.browser
    connected(page)
    if version == "4":
        browser.click("button", "Disconnect")
        browser.sees("#connection", "not connected")
        browser.choose("select[aria-label='Version of MQTT']", version)
        browser.click(".actions button", "Connect")
        browser.sees("#connection .dot.good")
    if version == "5":
        browser.choose("#subscribe select[name=qos]", "2")
    subscribe(page, f"live/{version}/#")
    browser.sees(".subscriptions .dot.good")
    publish(page, f"live/{version}/1", '{"celsius": 21.5, "of": "<b>"}')
    browser.sees(".toast", "Published and acknowledged")
    browser.sees(MESSAGES, '{ "celsius": 21.5, "of": "<b>" }')
    browser.click(MESSAGES)
    browser.sees(".message pre", '"celsius": 21.5')
    assert ("QoS 1" in browser.text(".message .payload-head")) is (version == "5")


def test_payload_and_properties_arrive_as_they_were_sent(page: Page) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "kinds/#")
    browser.sees(".subscriptions .dot.good")
    browser.choose("#publish select[name=format]", "hex")
    browser.click("#publish summary")
    browser.fill("#publish input[name=contentType]", "application/cbor")
    browser.fill("#publish input[name=responseTopic]", "answers/1")
    browser.fill("#publish textarea[name=user]", "traceparent=00-1\nname=\u202e<i>")
    publish(page, "kinds/cbor", "a1 61 6b 18 2a")
    browser.click(MESSAGES, '{ "k": 42 }')
    browser.sees(".message .tag", "application/cbor")
    browser.sees(".message dd", "answers/1")
    browser.sees(".message dd", "00-1")
    browser.sees(".message dd", "\\u202e<i>")
    browser.choose(".message select", "hex")
    browser.sees(".message pre", "a1 61 6b 18 2a")
    browser.choose(".message select", "msgpack")
    browser.sees(".message .payload-note", "not MessagePack")
    publish(page, "kinds/cbor", "a1 6")
    browser.sees("#publish .fault", "not hex")


def test_it_replays_from_an_offset_with_the_place_of_each_message(page: Page) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "plant/line-1/press-1/process", "offset")
    browser.fill("#subscribe input[name=from]", "15")
    browser.click("#subscribe button[type=submit]")
    browser.until(f"document.querySelectorAll({MESSAGES!r}).length == 5")
    browser.click(MESSAGES, '"cycle": 46')
    browser.sees(".message dt", "rumq-offset")
    browser.sees(".message dd", "15")
    browser.click(".message button", "Replay from here")
    browser.sees("dialog b", "offset 15")
    browser.press("Escape")


def test_replay_from_here_opens_the_console_with_the_messages(page: Page) -> None:
    browser = page.browser
    page.show("/topic?topic=plant/line-2/press-2/process")
    browser.fill("input[name=offset]", "12")
    browser.press("Enter")
    browser.until("document.querySelector('.records tbody tr')?.innerText.startsWith('12')")
    browser.click(".records button", "Replay from here")
    browser.click("dialog button.main", "Open in the console")
    browser.sees(".subscriptions", "plant/line-2/press-2/process")
    browser.until(f"document.querySelectorAll({MESSAGES!r}).length == 8")
    browser.sees(MESSAGES, '"cycle": 38')


def test_a_pause_holds_what_is_seen_and_a_filter_chooses(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "held/#")
    browser.sees(".subscriptions .dot.good")
    scene.publish(gateway, [scene.message("held/1", b"one")])
    browser.sees(MESSAGES, "one")
    browser.run("document.activeElement.blur()")
    browser.press("p")
    browser.sees(".messages header", "paused")
    scene.publish(gateway, [scene.message("held/2", b"two"), scene.message("held/3", b"three")])
    browser.sees(".messages header", "3 received")
    browser.sees_no(MESSAGES, "two")
    browser.click("#pause")
    browser.sees(MESSAGES, "two")
    browser.fill(".messages [data-search]", "thr")
    browser.sees_no(MESSAGES, "one")
    browser.sees(MESSAGES, "three")
    browser.click("#clear")
    browser.sees_no(MESSAGES)


def test_it_stays_connected_while_other_views_are_open(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "stays/#")
    browser.sees(".subscriptions .dot.good")
    browser.click("nav a", "Streams")
    browser.sees("h1", "Streams")
    scene.publish(gateway, [scene.message("stays/1", b"meanwhile")])
    browser.click("nav a", "MQTT console")
    browser.sees(MESSAGES, "meanwhile")
    browser.click("button[aria-label^=Unsubscribe]")
    browser.sees_no(".subscriptions")


def test_what_is_refused_says_why(page: Page) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "plant/#", "other")
    browser.fill("#subscribe input[name=from]", "yesterday")
    browser.click("#subscribe button[type=submit]")
    browser.sees(".subscriptions", "refused: ")


def test_a_reader_subscribes_and_is_not_offered_to_publish(page: Page) -> None:
    browser = page.browser
    page.sign_in("reader")
    connected(page)
    browser.sees(".who", "reader")
    subscribe(page, "plant/weather", "earliest")
    browser.until(f"document.querySelectorAll({MESSAGES!r}).length == 20")
    browser.sees_no("#publish")


def test_many_messages_leave_the_page_usable(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "many/#")
    browser.sees(".subscriptions .dot.good")
    scene.publish(gateway, [scene.message(f"many/{n % 7}", b"x" * 100) for n in range(5000)])
    browser.sees(".messages header", "5,000 received")
    assert browser.run(f"document.querySelectorAll({MESSAGES!r}).length") == 200


def test_a_topic_that_cannot_be_is_refused_before_it_is_sent(page: Page) -> None:
    """Sent, it would end the connection: MQTT 5.0, 4.7.1 and 4.13."""
    browser = page.browser
    connected(page)
    subscribe(page, "fine/#")
    browser.sees(".subscriptions .dot.good")
    for topic, said in (("plant/#", "no wildcards"), ("t" * 65_536, "65,535 bytes")):
        publish(page, topic, "x")
        browser.sees("#publish .fault", said)
    browser.click("#publish summary")
    browser.fill("#publish textarea[name=user]", "x" * 66_000)
    publish(page, "fine/1", "x")
    browser.sees("#publish .fault", "user property")
    browser.fill("#publish textarea[name=user]", "")
    for topic_filter, said in (
        ("a/#/b", "# is the last level"),
        ("a/b+", "+ is a level"),
        ("$share/g", "NAME"),
    ):
        subscribe(page, topic_filter)
        browser.sees("#subscribe .fault", said)
    publish(page, "fine/1", "still connected")
    browser.sees(MESSAGES, "still connected")
    browser.sees_no("#losses")


def test_a_connection_that_the_broker_ends_is_opened_again(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    connected(page)
    subscribe(page, "again/#")
    browser.sees(".subscriptions .dot.good")
    own = next(
        row["client_id"]
        for row in gateway.get("clients?client=page-*")["clients"]
        if row["subscriptions"] == ["again/#"]
    )
    gateway.act("disconnect", client=own)
    browser.sees("#losses", "It is there again")
    assert "the operator ended this connection" in browser.text("#losses")
    browser.sees("#connection .dot.good")
    browser.sees(".subscriptions .dot.good")
    publish(page, "again/1", "after the loss")
    browser.sees(MESSAGES, "after the loss")
    browser.click("#losses button", "Close")
    browser.sees_no("#losses")


def test_a_replay_tells_when_a_message_arrived_and_when_it_was_recorded(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    connected(page)
    recorded = gateway.get("records?topic=plant/weather&limit=1")["records"][0]["time_us"]
    subscribe(page, "plant/weather", "earliest")
    browser.sees(".messages th", "Recorded")
    browser.until(f"document.querySelectorAll({MESSAGES!r}).length == 20")
    shown = browser.run(
        f"import('/page/parts/format.js').then(({{timeOfDay, time}}) => [timeOfDay({recorded}), time({recorded})])"
    )
    assert browser.texts(f"{MESSAGES}:last-child td")[1] == shown[0]
    browser.click(f"{MESSAGES}:last-child")
    browser.sees(".message dd", f"{shown[1]}, when the broker received it")
    browser.sees(".message dt", "Arrived here")
