"""CAS-11: a stop in five phases, each told and limited, while clients publish or do not read."""

import contextlib
import socket
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from rumq.process.shard import shutdown
from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd
from tests.conformance.peer import Ended, Peer
from tests.conformance.wire import Kind, publish

PHASES = ["no new connections", "clients told", "log written", "shards drained", "log sealed"]
PUBLISHERS, WINDOW = 6, 50
ACKNOWLEDGED_MIN = 2_000  # of all together, before the stop


class Publisher(threading.Thread):
    """Publishes with QoS 1 until the broker ends it; knows what was acknowledged, and how it was told."""

    def __init__(self, broker: Rumqd, number: int, counted: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[str] = []
        self.last: Any = None
        self._counted = counted
        self._name = f"busy-{number}"
        self._peer = Peer(broker.address, deadline_s=30)
        self._peer.connect(self._name)
        self._sent = 0

    def run(self) -> None:
        try:
            for _ in range(WINDOW):
                self._send()
            while True:
                packet = self._peer.receive()
                if packet.kind is not Kind.PUBACK:
                    self.last = packet
                    continue
                if packet.code in (0, 0x10):
                    self.acknowledged.append(f"{self._name}/{packet.packet_id}")
                self._counted.release()
                with contextlib.suppress(OSError):  # it ends, and has said why
                    self._send()
        except (Ended, OSError):
            return

    def _send(self) -> None:
        if self._sent == 0xFFFF:
            return
        self._sent += 1
        payload = f"{self._name}/{self._sent}".encode()
        self._peer.send(publish(f"load/{self._name}", payload, qos=1, packet_id=self._sent))


@pytest.mark.parametrize("shards", [1, 2])
def test_nothing_that_was_acknowledged_is_lost_by_a_stop_under_load(tmp_path: Path, shards: int) -> None:
    broker = Rumqd(tmp_path / "data", "--set", f"shards.count={shards}")
    broker.start()
    deaf = Peer(broker.address)
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect("deaf")
    deaf.subscribe("load/#")
    counted = threading.Semaphore(0)
    publishers = [Publisher(broker, number, counted) for number in range(PUBLISHERS)]
    for publisher in publishers:
        publisher.start()
    for _ in range(ACKNOWLEDGED_MIN):
        assert counted.acquire(timeout=30)
    assert broker.stop() == 0
    for publisher in publishers:
        publisher.join(30)
        assert not publisher.is_alive()
    told = [event["phase"] for event in broker.named("broker.stop_phase")]
    assert Counter(told) == dict.fromkeys(PHASES, shards)
    if shards == 1:
        assert told == PHASES
    # All were connected, and in the middle of something, when the stop began.
    first = [event["clients"] for event in broker.named("broker.stop_phase") if event["phase"] == PHASES[0]]
    assert sum(first) == PUBLISHERS + 1
    after = [event["clients"] for event in broker.named("broker.stop_phase") if event["phase"] == PHASES[1]]
    assert sum(after) == 0
    assert [publisher.last and publisher.last.code for publisher in publishers] == [0x8B] * PUBLISHERS
    kept = Counter(rumqd("log", "read", "--data", str(broker.data), "-F", "%p").out.split())
    acknowledged = [payload for publisher in publishers for payload in publisher.acknowledged]
    assert len(acknowledged) >= ACKNOWLEDGED_MIN
    assert not [payload for payload in acknowledged if kept[payload] != 1]
    deaf.close()


def test_a_phase_that_does_not_end_is_left_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float]] = []

    async def main() -> None:
        began = trio.current_time()
        monkeypatch.setattr(
            shutdown,
            "tell",
            lambda name, **fields: told.append((fields["phase"], trio.current_time() - began)),
        )
        await shutdown.phase("log written", lambda: False, SimpleNamespace(connections={}))  # type: ignore[arg-type]

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert told == [("log written", pytest.approx(shutdown.STOP_SECONDS_MAX))]
