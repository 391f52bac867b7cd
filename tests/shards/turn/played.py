"""Sessions of several clients played on one shard, step by step: what each client is sent, and what is on disk then.

The shard, its pump and its log are the real ones; sockets, disk, threads and time are simulated, so that the same steps
give the same bytes. As a program it plays sessions, a line of JSON each, and prints what came of them: so two builds
are compared."""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from random import Random
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.segment_writer import Flush
from tests.conformance import wire
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Kind
from tests.simulation.machine import Build, Machine
from tests.simulation.network import Stream
from tests.simulation.shard import Worker

CAPACITY = 600  # of a stream socket, bytes: a client that does not read is soon full
PARTITIONS = 2
SECONDS_A_TURN = 0.0005
REST_TURNS = 40


class AtOnce(Worker):
    """A worker that lets the loop write small groups, as the real one does while its threads have nothing to do."""

    def maybe_write(self, flush: Flush) -> bool:
        if self.pending:
            return False
        flush.run()
        return True


class PlayedClient:
    """heard: all bytes so far; unanswered: (packet id, QoS or what the broker waits for) that it may acknowledge"""

    def __init__(self, stream: Stream, version: int) -> None:
        self.stream, self.version = stream, version
        self.heard, self._rest = bytearray(), bytearray()
        self.unanswered: list[tuple[int, int]] = []

    def say(self, data: bytes) -> None:
        """As much as the broker's socket takes; the rest is lost with the connection, as it is no packet's end."""
        if not self.stream.closed and not self.stream.ended:
            self.stream.other.capacity = 1 << 20
            self.stream.send(data)

    def read(self, size: int) -> None:
        """Take so many bytes, and note what can be acknowledged."""
        stream = self.stream
        if stream.closed:
            return
        if stream.coming:
            stream.arrive(len(stream.coming))
        if stream.here:
            data = stream.recv(size)
            self.heard += data
            self._rest += data
        while (found := frame_size(bytes(self._rest[:5]))) is not None and len(self._rest) >= found[1]:
            head, whole = found
            packet = decode(self._rest[0], bytes(self._rest[head:whole]), self.version)
            del self._rest[:whole]
            if packet.kind == Kind.PUBLISH and packet.qos:
                self.unanswered.append((packet.packet_id, packet.qos))
            elif packet.kind == Kind.PUBREL:
                self.unanswered.append((packet.packet_id, 3))
            elif packet.kind == Kind.PUBREC:
                self.unanswered.append((packet.packet_id, 4))

    def answer(self, which: int) -> None:
        """Acknowledge one of those that wait, in any order."""
        if self.unanswered:
            packet_id, state = self.unanswered.pop(which % len(self.unanswered))
            kind = {1: Kind.PUBACK, 2: Kind.PUBREC, 3: Kind.PUBCOMP, 4: Kind.PUBREL}[state]
            self.say(wire.ack(kind, packet_id))


class Playing:
    """durability: of the stream; at_once: whether the loop may write; clients: by number, those that are connected"""

    def __init__(self, durability: str, *, at_once: bool) -> None:
        build = Build(1, PARTITIONS, durability, 0.002, 1 << 16, CAPACITY, 1 << 16)
        self.machine = Machine(build, Random(1), None)
        self.machine.start(0)
        self.shard: Any = self.machine.shards[0]
        assert self.shard is not None
        if at_once:
            for worker in self.shard.workers:
                worker.__class__ = AtOnce
        self.clients: dict[int, PlayedClient] = {}
        self._heard: list[tuple[int, bytes]] = []
        self.turn()

    # Steps

    def connect(self, number: int, version: int, clean: bool) -> None:
        self.leave(number)
        ours, theirs = self.machine.network.pair("client", "shard")
        self.shard.accept(theirs, f"10.0.0.{number}:1")
        client = self.clients[number] = PlayedClient(ours, version)
        expiry = [(0x11, 1000)] if version == 5 and not clean else []
        client.say(wire.connect(f"c{number}", version, clean=clean, properties=expiry))

    def leave(self, number: int) -> None:
        """A connection is cut."""
        client = self.clients.pop(number, None)
        if client is not None:
            self._heard.append((number, bytes(client.heard)))
            client.stream.close()

    def say(self, number: int, data: str) -> None:
        if number in self.clients:
            self.clients[number].say(bytes.fromhex(data))

    def read(self, number: int, size: int) -> None:
        if number in self.clients:
            self.clients[number].read(size)

    def answer(self, number: int, which: int) -> None:
        if number in self.clients:
            self.clients[number].answer(which)

    def turn(self) -> None:
        """What was said arrives, and the loop turns once."""
        self.machine.now_us += round(SECONDS_A_TURN * 1e6)
        self.machine.monotonic += SECONDS_A_TURN
        for stream in list(self.machine.network.moving):
            if stream.poller is not None:
                stream.arrive(len(stream.coming))
        self.shard.turn()

    def work(self) -> None:
        """The threads come to the end of what they have to do."""
        for worker in self.shard.workers:
            while worker.jobs:
                worker.run()

    def play(self, steps: list[list[Any]]) -> None:
        for name, *arguments in steps:
            getattr(self, name)(*arguments)
        for _ in range(REST_TURNS):
            self.work()
            self.turn()
            for client in self.clients.values():
                client.read(1 << 20)

    def outcome(self) -> dict[str, Any]:
        """What each connection was sent, and each file's content."""
        for number in list(self.clients):
            self.leave(number)
        self.turn()
        self.work()
        self.turn()
        files = self.shard.files
        return {
            "heard": [(number, data.hex()) for number, data in self._heard],
            "files": {path: sha256(files.content(path)).hexdigest() for path in sorted(paths(files, "data"))},
        }


def paths(files: SimulatedFiles, folder: str) -> Iterator[str]:
    """Of all files below a folder."""
    for name in files.names(folder):
        path = f"{folder}/{name}"
        try:
            files.names(path)
        except OSError:
            yield path
        else:
            yield from paths(files, path)


def played(session: dict[str, Any]) -> dict[str, Any]:
    """What comes of one."""
    playing = Playing(session["durability"], at_once=session["at_once"])
    playing.play(session["steps"])
    return playing.outcome()


def main() -> None:
    print(json.dumps({"from": Machine.__module__, "turn": sys.modules["rumq.shards.turn.turn"].__file__}), flush=True)
    for line in sys.stdin:
        try:
            outcome = played(json.loads(line))
        except Exception as fault:
            outcome = {"fault": repr(fault)}
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
