"""Messages that shards hand over to each other are counted as such, where they leave and where they arrive."""

import time
import zlib
from pathlib import Path

import pytest

from tests import admin_questions
from tests.conformance.peer import Peer
from tests.status.test_broker import SECONDS_MAX, at_home, running

SHARDS = 2
COUNTERS = ("ask.sock", "ask-1.sock")


@pytest.mark.parametrize("qos", [0, 1])
def test_a_publish_to_another_shards_partition_is_counted_on_both_sides(tmp_path: Path, qos: int) -> None:
    with running(tmp_path, SHARDS) as broker, Peer(broker.address) as publisher:
        assert publisher.connect(at_home(0, SHARDS, "p")).code == 0
        topics = [f"t/{number}" for number in range(40)]
        elsewhere = sum(zlib.crc32(topic.encode()) % SHARDS == 1 for topic in topics)
        assert 0 < elsewhere < len(topics)
        for topic in topics:
            publisher.publish(topic, b"x", qos)
        publisher.publish("t/0", b"the end", 1)  # it is in one of the two
        at_end = zlib.crc32(b"t/0") % SHARDS
        told: list[tuple[int, int]] = []
        wanted = [(elsewhere + at_end, 0), (0, elsewhere + at_end)]
        until = time.monotonic() + SECONDS_MAX
        while told != wanted:  # QoS 0 arrives soon
            assert time.monotonic() < until, told
            said = [admin_questions.ask_one(str(broker.data), name, {"ask": "status"}) for name in COUNTERS]
            told = [(status["handed_over"], status["taken_over"]) for status in said]
        total = admin_questions.ask(str(broker.data), {"ask": "status"})
        assert total["handed_over"] == total["taken_over"] == elsewhere + at_end
