"""A plant for pictures and tests of the page: pumps that publish, consumers that are slow, each for a reason.

python -m tests.page.plant PORT        until it is interrupted"""

from __future__ import annotations

import contextlib
import math
import socket
import sys
import threading
import time
from collections.abc import Iterable
from typing import Self

from tests.conformance import wire
from tests.conformance.wire import Kind, Prop

DAY = 86_400
LINES, PUMPS = 3, 8
HOSTILE = '<script>alert("x")</script>\u202e"\'&'


class Speaker:
    """A client of bytes: connected once made. reads: whether it takes what it is sent; else the socket fills"""

    def __init__(
        self, port: int, client_id: str, *, subscribes: Iterable[tuple[str, int]] = (), reads: bool = True,
        acknowledges: bool = True, receive_maximum: int = 100, lasts: bool = True, version: int = 5,
    ) -> None:  # fmt: skip
        self.client_id, self._reads, self._acknowledges = client_id, reads, acknowledges
        self.socket = socket.socket()
        if not reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.socket.settimeout(30)
        self._heard = bytearray()
        properties = [(Prop.RECEIVE_MAXIMUM, receive_maximum)] if version == 5 else []
        if lasts and version == 5:
            properties.append((Prop.SESSION_EXPIRY, DAY))
        self.say(wire.connect(client_id, version=version, clean=not lasts, keep_alive=0, properties=properties))
        self.take(Kind.CONNACK)
        if filters := list(subscribes):
            self.say(wire.subscribe(1, filters, version=version))
            self.take(Kind.SUBACK)

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def take(self, kind: Kind) -> None:
        """Read until there is a packet of this kind; acknowledges messages, unless it does not."""
        while True:
            for first, body in self._packets():
                if first >> 4 == kind:
                    return
                if first >> 4 == Kind.PUBLISH and first & 6 and self._acknowledges:
                    length = int.from_bytes(body[:2], "big")
                    self.say(wire.ack(Kind.PUBACK, int.from_bytes(body[2 + length : 4 + length], "big")))
            some = self.socket.recv(1 << 16)
            if not some:
                raise ConnectionError("the broker has closed the connection")
            self._heard += some

    def _packets(self) -> Iterable[tuple[int, bytes]]:
        while len(self._heard) >= 2:
            size, shift, pos = 0, 0, 1
            while pos < len(self._heard):
                byte = self._heard[pos]
                size |= (byte & 127) << shift
                shift, pos = shift + 7, pos + 1
                if byte < 128:
                    break
            else:
                return
            if len(self._heard) < pos + size:
                return
            first, body = self._heard[0], bytes(self._heard[pos : pos + size])
            del self._heard[: pos + size]
            yield first, body

    def serve(self) -> None:
        """Read and acknowledge until the connection ends."""
        with contextlib.suppress(OSError):
            self.socket.settimeout(None)
            self.take(Kind.DISCONNECT)

    def leave(self) -> None:
        """Without a session: it is away from now on."""
        self.say(wire.disconnect())
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


class Plant:
    """historian keeps up, dashboard has all in flight, wallboard does not read, night-shift is away; press-1 and -2
    share a group."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._round = 0
        self.pumps = Speaker(port, "gateway-hall-3", lasts=False)
        everything = [("plant/#", 1)]
        night = Speaker(port, "night-shift", subscribes=everything)
        night.leave()
        self.here = [
            Speaker(port, "historian", subscribes=everything),
            Speaker(port, "press-1", subscribes=[("$share/press/plant/+/+/pressure", 1)]),
            Speaker(port, "press-2", subscribes=[("$share/press/plant/+/+/pressure", 1)]),
            Speaker(port, HOSTILE, subscribes=[("plant/1/+/temperature", 0)]),
            Speaker(port, "scada-legacy", subscribes=[("plant/2/#", 0)], version=4, lasts=False),
        ]
        self.slow = [
            Speaker(port, "dashboard", subscribes=everything, acknowledges=False, receive_maximum=20),
            Speaker(port, "wallboard", subscribes=[("plant/#", 0), ("$log/earliest/plant/#", 0)], reads=False),
        ]
        for speaker in self.here:
            threading.Thread(target=speaker.serve, daemon=True).start()

    def publish(self, rounds: int = 1) -> None:
        """One message of each figure of each pump, acknowledged, for each round."""
        for _ in range(rounds):
            self._round += 1
            batch, number = [], 0
            for line in range(1, LINES + 1):
                for pump in range(1, PUMPS + 1):
                    swing = math.sin(self._round / 40 + pump)
                    for name, value in (("temperature", 64 + 6 * swing), ("pressure", 3.2 + swing / 2)):
                        number += 1
                        payload = f'{{"value": {value:.2f}, "unit": "{"°C" if name == "temperature" else "bar"}"}}'
                        batch.append(wire.publish(f"plant/{line}/pump-{pump}/{name}", payload.encode(), 1, number))
            self.pumps.say(b"".join(batch))
            for _ in batch:
                self.pumps.take(Kind.PUBACK)

    def retain(self) -> None:
        for line in range(1, LINES + 1):
            self.pumps.say(wire.publish(f"plant/{line}/state", b'{"state": "running"}', 1, line, retain=True))
            self.pumps.take(Kind.PUBACK)

    def end(self) -> None:
        for speaker in (self.pumps, *self.here, *self.slow):
            speaker.socket.close()


def main() -> None:
    plant = Plant(int(sys.argv[1]))
    plant.retain()
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            plant.publish(1 + round(2 + 2 * math.sin(time.time() / 37)))
            time.sleep(0.2)
    plant.end()


if __name__ == "__main__":
    main()
