"""A shard turned by hand, and connections that can be held: what one turn does for each of them can be counted."""

import select
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet
from tests.faults.shard import Client, Shard


class Turned(Shard):
    """Its clients wait for `turn`, or `settle`."""

    def turn(self) -> None:
        """One turn, with what threads have done until now."""
        for worker in (self.parts.writing.workers.writer, self.parts.writing.workers.reader):
            worker.finish()
        self.parts.turn.begin_turn()
        self.parts.turn.end_turn()

    def wait(self) -> None:
        """Until a thread has ended a job."""
        select.select([self.parts.writing.workers.writer.fd, self.parts.writing.workers.reader.fd], [], [])


class Connection(Client):
    """One that is read as the pump reads it: what is not taken waits, and nothing is read while it is held."""

    def __init__(self, shard: Turned, client_id: str, version: int = 5, **connect: Any) -> None:
        self.is_held = self._is_reading = False
        self._unread = b""
        super().__init__(shard, client_id, version, **connect)

    def say(self, *packets: bytes) -> None:
        self.send(*packets)
        self.shard.settle()

    def send(self, *packets: bytes) -> None:
        """Say something without a turn."""
        self._unread += b"".join(packets)
        self._read()

    def _read(self) -> None:
        while self._unread and not self.is_held and not self.closed and not self._is_reading:
            self._is_reading = True
            taken = self.link.receive(self._unread, 0, len(self._unread))
            self._is_reading = False
            self._unread = self._unread[taken:]
            if not taken:
                break

    def pause_reading(self) -> None:
        self.is_held = True

    def resume_reading(self) -> None:
        self.is_held = False
        self._read()

    @property
    def has_unread(self) -> bool:
        return bool(self._unread)


class Others:
    """Two well-behaved clients: what one publishes, the other has after the same turn."""

    def __init__(self, shard: Turned) -> None:
        self.shard = shard
        self.publisher, self.subscriber = Connection(shard, "other-p"), Connection(shard, "other-s")
        self.subscriber.say(wire.subscribe(1, [("others/topic", 0)]))
        assert [packet.kind for packet in self.subscriber.take()] == [Kind.SUBACK]
        self.sent = 0

    def live_through_a_turn(self) -> None:
        self.sent += 1
        payload = b"%d" % self.sent
        self.publisher.send(wire.publish("others/topic", payload))
        self.shard.turn()
        heard = [packet.payload for packet in self.subscriber.take()]
        assert heard == [payload], "the others have their message in the turn in which it was sent"


def payloads(packets: list[Packet]) -> list[bytes]:
    return [packet.payload for packet in packets if packet.kind == Kind.PUBLISH]


def turned(**main: Any) -> Turned:
    return Turned(SimulatedFiles(), **main)
