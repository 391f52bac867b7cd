"""A router's packets wait: each that leaves one address for another of `delays` is given back so many seconds later.

A TUN device in the router's namespace gets the packets by a rule for each pair, and routes on what comes out of it.
For kernels without netem. `python -m tests.cluster.live.delay DEVICE SOURCE,TARGET,SECONDS ...`, inside the namespace.
Knows no broker."""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import socket
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # if_tun.h
PACKET_BYTES_MAX = 1 << 16
READY = "ready"


class DelayedPackets:
    """Packets by the time at which they go on; of one pair they stay in order. delays: seconds by (source, target)"""

    def __init__(self, delays: dict[tuple[str, str], float]) -> None:
        self._delays = delays
        self._heap: list[tuple[float, int, bytes]] = []
        self._count = 0

    def add(self, packet: bytes, now: float) -> None:
        source, target = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
        self._count += 1
        heapq.heappush(self._heap, (now + self._delays.get((source, target), 0.0), self._count, packet))

    def due(self, now: float) -> list[bytes]:
        found = []
        while self._heap and self._heap[0][0] <= now:
            found.append(heapq.heappop(self._heap)[2])
        return found

    def wait_s(self, now: float) -> float | None:
        """Until the next one; None if nothing waits."""
        return max(0.0, self._heap[0][0] - now) if self._heap else None


def opened(device: str) -> int:
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
    return handle


def run(device: str, delays: dict[tuple[str, str], float]) -> None:
    handle, waiting = opened(device), DelayedPackets(delays)
    print(READY, flush=True)
    while True:
        select.select([handle], [], [], waiting.wait_s(time.monotonic()))
        try:
            while True:
                waiting.add(os.read(handle, PACKET_BYTES_MAX), time.monotonic())
        except BlockingIOError:
            pass
        for packet in waiting.due(time.monotonic()):
            os.write(handle, packet)


if __name__ == "__main__":
    pairs = [each.split(",") for each in sys.argv[2:]]
    run(sys.argv[1], {(source, target): float(seconds) for source, target, seconds in pairs})
