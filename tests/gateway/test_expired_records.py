"""Messages that have expired are answered to nobody: not as records, not as a value, and not after a restart."""

from pathlib import Path

import pytest

from rumq.gateway.records.records import ServedRecords
from tests.gateway.conftest import Gateway, started

SECOND_US = 1_000_000
EXPIRY_SECONDS = 3600


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    return started(tmp_path)


def payloads(path: Path, now_us: int) -> list[str]:
    found = ServedRecords(str(path)).fetch("plant/#", "earliest", None, 100, lambda topic: True, now_us)
    assert not found.more, "all of the log was looked at"
    return [each.payload for each in found.records]


def value(path: Path, now_us: int) -> str | None:
    found = ServedRecords(str(path)).last("plant/7", lambda topic: True, now_us)
    return found.payload if found is not None else None


def test_an_expired_message_is_answered_to_nobody(gateway: Gateway) -> None:
    broker = gateway.broker
    try:
        lasting = {"topic": "plant/7", "payload": "lasting", "qos": 1}
        sent = [lasting, {**lasting, "payload": "short", "properties": {"expiry_seconds": EXPIRY_SECONDS}}]
        assert gateway.publish(*sent).status == 200
        while len(gateway.get("records?topic=plant/7")["records"]) < 2:
            pass
        times = [row["time_us"] for row in gateway.get("records?topic=plant/7")["records"]]
        ends_us = times[1] + EXPIRY_SECONDS * SECOND_US
        for is_restarted in (False, True):
            if is_restarted:
                broker.stop()
                broker.start()
            assert payloads(broker.data, ends_us - 1) == ["lasting", "short"]
            assert value(broker.data, ends_us - 1) == "short"
            assert payloads(broker.data, ends_us) == ["lasting"]
            assert value(broker.data, ends_us) == "lasting", "the newest that may still be given"
    finally:
        broker.end()
