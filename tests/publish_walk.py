"""Trace one QoS 1 PUBLISH through a shard: which files stand on the call stack when it changes hands.

Run with modules that are not compiled: `python -m tests.publish_walk ROOT`, ROOT being where the product lies, prints
{"walk": files on a stack, "ran": all files of which a function ran}, as JSON."""

import json
import socket
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from tests.conformance import wire
from tests.faults.shard import Shard

PRODUCT = ("commitlog/", "router/", "rumq/")
# Where the message, its group or its acknowledgement changes hands: C functions by name, others by file and name.
SYSTEM = {"put", "eventfd_write"}
HANDED = {
    ("rumq/net/kernels/sockets.py", "receive"),  # recv(2)
    ("rumq/net/kernels/sockets.py", "send_one"),
    ("rumq/mqtt/kernels/short_acks.py", "put_ack"),  # its row is in the batch, its PUBACK in the wire
    ("commitlog/chunk.py", "Chunk.set"),  # it has an lsn
    ("rumq/session/connection/pending_acks.py", "hold"),  # the PUBACK waits for that lsn
    ("commitlog/testing/simulated_files.py", "SimulatedFiles.write"),
    ("commitlog/testing/simulated_files.py", "SimulatedFiles.sync"),
    ("commitlog/log/partition.py", "Partition.complete"),  # it is committed
    ("rumq/net/connection.py", "Connection.write"),  # the PUBACK is in the outbox
}


class Tracer:
    """handed: what has changed hands, in order; walk, ran: files, from the root of the product"""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}/"
        self.is_on = False
        self.handed: list[str] = []
        self.walk: dict[str, None] = {}
        self.ran: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if not self.is_on:
            return
        if event == "c_call" and called.__name__ in SYSTEM and self._file(frame):
            self._stack(called.__name__, frame)
        elif event == "call" and (file := self._file(frame)):
            self.ran[file] = None
            name = frame.f_code.co_qualname
            if (file, name) in HANDED:
                self._stack(name, frame.f_back)

    def _stack(self, name: str, frame: FrameType | None) -> None:
        self.handed.append(name)
        files = []
        while frame is not None:
            files.append(self._file(frame))
            frame = frame.f_back
        self.walk.update(dict.fromkeys(filter(None, reversed(files))))

    def _file(self, frame: FrameType) -> str:
        file = frame.f_code.co_filename.removeprefix(self._root)
        return file if file.startswith(PRODUCT) else ""


def answer(shard: Shard, client: socket.socket) -> bytes:
    """Turns until the client has been sent something."""
    while True:
        shard.parts.pump.turn(1.0)
        try:
            return client.recv(1 << 16)
        except BlockingIOError:
            pass


def main() -> None:
    tracer = Tracer(Path(sys.argv[1]))
    threading.setprofile(tracer)
    shard = Shard(SimulatedFiles(), pump=Pump)
    client, served = socket.socketpair()
    client.setblocking(False)
    served.setblocking(False)
    connection = Connection(shard.parts.pump, served, "test", 1 << 18)
    connection.link = shard.parts.clients.broker.welcome(connection)
    shard.parts.pump.add(connection)
    client.send(wire.connect("publisher", 5))
    assert answer(shard, client)[0] >> 4 == wire.Kind.CONNACK
    client.send(wire.publish("t", b"the topic has a number from now on", 1, 1))
    assert answer(shard, client)[0] >> 4 == wire.Kind.PUBACK
    while shard.parts.writing.workers.writer.pending or any(p.wants_room for p in shard.store.own):
        shard.parts.pump.turn(0.01)  # zeros ahead of the segment's chunks are written after the first message
    client.send(wire.publish("t", b"this one", 1, 2))
    sys.setprofile(tracer)
    tracer.is_on = True
    puback = answer(shard, client)
    tracer.is_on = False
    sys.setprofile(None)
    assert puback[0] >> 4 == wire.Kind.PUBACK
    shard.end()
    print(json.dumps({"walk": list(tracer.walk), "ran": sorted(tracer.ran), "handed": tracer.handed}))


if __name__ == "__main__":
    main()
