"""A wire that makes a fault on purpose, in a thread of the test, for the bench to find."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from bench.connections import Address
from bench.load.load import Load
from bench.peers.wire import Copier
from tests.bench.frames import frame

FRAME_BYTES = len(frame(0, 0))

# All whole frames of one publisher that have arrived -> what is passed on instead.
Fault = Callable[[list[bytes]], list[bytes]]


class FaultyCopier(Copier):
    def __init__(self, listener: socket.socket, fault: Fault) -> None:
        super().__init__(listener, "all")
        self.fault, self.tail = fault, b""

    def pass_on(self, data: memoryview, publisher: int) -> None:
        stream = self.tail + bytes(data)
        whole = len(stream) // FRAME_BYTES * FRAME_BYTES
        self.tail = stream[whole:]
        frames = [stream[at : at + FRAME_BYTES] for at in range(0, whole, FRAME_BYTES)]
        super().pass_on(memoryview(b"".join(self.fault(frames))), publisher)


@contextlib.contextmanager
def wire(fault: Fault) -> Iterator[Address]:
    """For one publisher; serves until the process ends, as its thread has nothing to close."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=FaultyCopier(listener, fault).run, daemon=True).start()
    yield listener.getsockname()


LOAD = Load(publishers=1, subscribers=2, lead=500)
