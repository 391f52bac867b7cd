"""The incident of docs/guides/incident.md, played through by clicks and keys with a real consumer that is slow."""

from __future__ import annotations

import json

import pytest

from tests.gateway.conftest import Gateway
from tests.page.conftest import BROWSER, REASON
from tests.page.incident import IN_FLIGHT, SlowConsumer, begin, play
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]


def test_a_slow_consumer_is_found_understood_and_its_place_reset(page: Page, gateway: Gateway) -> None:
    consumer = SlowConsumer(gateway.broker.address, "billing", "orders/#")
    try:
        begin(gateway, consumer)
        play(page, gateway, consumer, lambda name: None)
    finally:
        consumer.end()
    # What was in flight, and then today's order: none of the corrections that waited.
    topics = [topic for topic, _ in consumer.got]
    assert topics == ["orders/shop"] * 10 + ["orders/import"] * (IN_FLIGHT - 10) + ["orders/shop"]
    assert json.loads(consumer.got[-1][1])["order"] == 4711
    reset = gateway.broker.heard(lambda event: event["event"] == "admin.action" and event["action"] == "reset")
    assert reset["what"] == {"client": "billing", "start": "latest", "filter": None}
