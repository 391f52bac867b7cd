"""What it costs to deliver what waited for a session, after the broker was killed: reads, syncs and turns."""

import select
from typing import Any

import pytest

from commitlog.read.cold_reads import BLOCK_BYTES_MAX
from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, subscribed

TURNS_MAX = 100  # until nothing is left to do but to wait for the client
INFLIGHT_MAX = 1000  # of the listener: what a client that names no receive maximum has in flight at most


class CountingShard(Shard):
    """early: turns that the pump would begin at once, although all there is to do is to wait for a disk

    As the pump, it does not wait while a turn wants another one."""

    early = 0

    def settle(self) -> None:
        turn, workers = self.parts.turn, self.parts.writing.workers
        for _ in range(TURNS_MAX):
            turn.begin_turn()
            turn.end_turn()
            busy = [worker.fd for worker in workers if worker.pending]
            if not busy and turn.seconds_to_next_deadline() > 0:
                return
            if busy:
                self.early += turn.seconds_to_next_deadline() == 0
                select.select(busy, [], [])
                for worker in workers:
                    worker.finish()
        raise AssertionError("turn after turn, and nothing to do for a client that waits")


def waiting(qos: int, count: int, at_once: int, size: int = 4) -> SimulatedFiles:
    """The disk of a broker that was killed: so many messages wait for session r.

    at_once: published in one turn; size: of a payload, bytes"""
    shard = Shard(SimulatedFiles(), segment_bytes_max=1 << 30)
    subscribed(shard, "r", "t", options=qos, **LASTING).link.lost("the network")
    publisher = Client(shard, "p", 5)
    for first in range(0, count, at_once):
        publisher.say(
            *[wire.publish("t", b"%04d" % n + bytes(size - 4), qos, 1 + n) for n in range(first, first + at_once)]
        )
        if qos == 2:
            publisher.say(*[wire.ack(Kind.PUBREL, 1 + n) for n in range(first, first + at_once)])
    files = shard.files.after_kill()
    shard.end()
    return files


def deliver(shard: Shard, receive_maximum: int) -> list[bytes]:
    """The session is back and answers at once all that it gets together. Returns the payloads."""
    more = [(Prop.RECEIVE_MAXIMUM, receive_maximum)] if receive_maximum else []
    reader = Client(shard, "r", 5, clean=False, properties=[*LASTING["properties"], *more])
    got: list[bytes] = []
    while packets := reader.take():
        replies: list[Any] = []
        for packet in packets:
            answer = Kind.PUBCOMP
            if packet.kind is Kind.PUBLISH:
                got.append(packet.payload)
                assert not packet.dup, "no client has had it"
                answer = Kind.PUBACK if packet.qos == 1 else Kind.PUBREC
            assert packet.packet_id is not None
            replies.append(wire.ack(answer, packet.packet_id))
        reader.say(*replies)
    return got


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("receive_maximum", [20, 100, 0])
@pytest.mark.parametrize("at_once", [1, 50])
def test_a_window_of_messages_costs_one_sync_and_no_chunk_is_read_twice(
    qos: int, receive_maximum: int, at_once: int
) -> None:
    count = 600
    files = waiting(qos, count, at_once)
    shard = CountingShard(files, segment_bytes_max=1 << 30)
    before = len(files.calls)
    files.looks.clear()
    got = deliver(shard, receive_maximum)
    assert got == [b"%04d" % n for n in range(count)]
    windows = -(-count // min(receive_maximum or INFLIGHT_MAX, INFLIGHT_MAX))
    syncs = sum(name == "sync" and "_state" in path for name, path in files.calls[before:])
    reads = sum(name == "read" and "main" in path for name, path in files.looks)
    reads -= sum(name == "open" and path.endswith(".seg") for name, path in files.looks)  # each asks for the salt
    assert syncs <= qos * windows + 8, "one for a window and QoS: the journal's entries about it are one group"
    assert reads <= count // at_once * 4096 // BLOCK_BYTES_MAX + 3, "many chunks at once, and none twice"
    assert shard.early == 0
    shard.end()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_client_that_waits_is_not_offered_again_what_it_cannot_take(qos: int) -> None:
    """Such turns keep the loop busy and, by the interpreter's lock, the thread that everyone waits for."""
    files = waiting(qos, 600, 50, size=1000)  # more than a turn offers to one reader
    shard = CountingShard(files, segment_bytes_max=1 << 30)
    shard.early = 0
    assert len(deliver(shard, 20)) == 600
    assert shard.early == 0
    shard.end()
