"""The incident of docs/guides/incident.md: a slow consumer is found, understood and its place reset, with the page
alone.

The consumer is Paho, with a session that outlives connections; it acknowledges when the story says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.broker_process import SECONDS_MAX, Address
from tests.gateway.conftest import Gateway
from tests.page import scene
from tests.page.page import Page

IN_FLIGHT = 20
CORRECTIONS = 5_000
Shot = Callable[[str], None]


class SlowConsumer:
    """Keeps what it gets, and acknowledges nothing until it is told to go on."""

    def __init__(self, address: Address, client_id: str, topic_filter: str) -> None:
        self.got: list[tuple[str, bytes]] = []
        self._news = threading.Condition()
        self._waiting: list[paho.MQTTMessage] = []
        self._goes_on = False
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5, manual_ack=True)
        self._client.on_message = self._take
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 86_400
        properties.ReceiveMaximum = IN_FLIGHT
        self._client.connect(address.host, address.port, clean_start=False, properties=properties)
        self._client.loop_start()
        self._client.subscribe(topic_filter, 1)
        assert subscribed.wait(SECONDS_MAX)

    def _take(self, client: paho.Client, _: object, message: paho.MQTTMessage) -> None:
        with self._news:
            self.got.append((message.topic, message.payload))
            if self._goes_on:
                client.ack(message.mid, message.qos)
            else:
                self._waiting.append(message)
            self._news.notify_all()

    def go_on(self) -> None:
        """Acknowledge what waits, and everything from now on."""
        with self._news:
            self._goes_on = True
            for message in self._waiting:
                self._client.ack(message.mid, message.qos)
            self._waiting.clear()

    def wait_for(self, is_there: Callable[[list[tuple[str, bytes]]], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: is_there(self.got), SECONDS_MAX), self.got[-3:]

    def end(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def order(topic: str, number: int, **more: Any) -> dict[str, Any]:
    value = {"order": number, "total": round(19.9 + number % 70, 2), **more}
    return scene.message(topic, json.dumps(value).encode(), content="application/json", qos=1)


def begin(gateway: Gateway, consumer: SlowConsumer) -> None:
    """An import of old corrections comes between the orders of a shop. consumer: billing, of orders/#"""
    scene.publish(gateway, [order("orders/shop", n) for n in range(10)])
    scene.publish(gateway, [order("orders/import", n, source="correction-2025") for n in range(CORRECTIONS)])
    scene.publish(gateway, [order("orders/shop", n) for n in range(10, 40)])
    consumer.wait_for(lambda got: len(got) == IN_FLIGHT)


def play(page: Page, gateway: Gateway, consumer: SlowConsumer, shot: Shot) -> None:
    """shot: takes a picture, by its name"""
    browser = page.browser

    # Found: the overview has the slowest consumers first.
    page.show("/")
    browser.sees("table[aria-label='Slow consumers'] tbody tr", "billing")
    browser.sees("table[aria-label='Slow consumers'] tbody tr", "does not acknowledge")
    shot("incident-1-overview")
    browser.run("testFind(\"table[aria-label='Slow consumers'] tbody tr\", 'billing').focus()")
    browser.press("Enter")

    # Understood: what holds it, what it waits for, and where that came from.
    browser.sees("h1", "billing")
    browser.sees(".state", f"all {IN_FLIGHT} messages are in flight")
    shot("incident-2-client")
    browser.press("g")
    browser.press("t")
    browser.sees("h1", "Topics")
    browser.press("/")
    browser.type("orders")
    browser.sees("tbody tr", f"{CORRECTIONS:,}")
    shot("incident-3-topics")
    browser.click("tbody tr", "orders/import")
    browser.sees("h1", "orders/import")
    browser.click(".records tbody tr", '"order": 4999')
    browser.sees(".detail pre", "correction-2025")
    browser.run("document.querySelector('.records').scrollIntoView()")
    shot("incident-4-records")

    # Its place reset: to the end of the log, past the corrections.
    page.show("/client?id=billing")
    browser.click(".heading button", "Reset place")
    browser.sees("dialog", "what it subscribes to of them will not be sent to it")
    shot("incident-5-reset")
    browser.click("dialog button.main")
    browser.sees(".toast", "starts again at latest")
    consumer.go_on()
    scene.publish(gateway, [order("orders/shop", 4711)])
    consumer.wait_for(lambda got: b"4711" in got[-1][1])
    browser.sees(".state", "It has read everything that it is to get")
    shot("incident-6-after")
