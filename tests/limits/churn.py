"""Clients that come and go by the hundred thousand, and what the memory of the broker does meanwhile: table and curve.

A hundred client ids, a keep alive of 18 hours; one in eight is lost without DISCONNECT, one in eight breaks the
protocol, one in eight has a lasting session, which the next of its name takes over. Knows no broker but by its port."""

import csv
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.conformance import wire
from tests.conformance.wire import Prop

AT_ONCE = 64
CLIENT_IDS = 100
ADDRESSES = 50  # of the loopback network, each with its own ports
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 300, 60, 40


class Sample(NamedTuple):
    seconds: float
    connections: int
    memory_bytes: int


def words() -> list[bytes]:
    """What each client says, from CONNECT to its end."""
    made = []
    for number in range(8 * CLIENT_IDS):
        kind, name = number % 8, f"churn-{number % CLIENT_IDS}"
        lasting = kind == 3
        connect = wire.connect(
            name,
            5,
            clean=not lasting,
            keep_alive=65_535,
            properties=[(Prop.SESSION_EXPIRY, 60)] if lasting else [],
        )
        end = {1: b"", 2: b"\x10\x00"}.get(kind, wire.disconnect())
        made.append(connect + wire.subscribe(1, [("churn/#", 1)]) * (kind in (0, 3)) + end)
    return made


def churn(port: int, connections: int, memory_bytes: Callable[[], int], samples: int = 100) -> list[Sample]:
    """So many connections, one batch after the other; how much memory there was meanwhile."""
    said, found = words(), [Sample(0.0, 0, memory_bytes())]
    began, done, every = time.monotonic(), 0, max(AT_ONCE, connections // samples)
    while done < connections:
        batch = []
        for number in range(done, min(connections, done + AT_ONCE)):
            source = (f"127.0.0.{1 + number % ADDRESSES}", 0)
            peer = socket.create_connection(("127.0.0.1", port), 60, source)
            peer.sendall(said[number % len(said)])
            if number % 8 == 1:
                peer.shutdown(socket.SHUT_WR)
            batch.append(peer)
        for peer in batch:
            with peer:
                while peer.recv(4096):
                    pass
        before, done = done, done + len(batch)
        if done // every > before // every:
            found.append(Sample(round(time.monotonic() - began, 2), done, memory_bytes()))
    return found


def write_table(samples: list[Sample], path: Path) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(Sample._fields)
        rows.writerows(samples)


def write_curve(samples: list[Sample], path: Path) -> None:
    """Memory over connections, as an SVG."""
    last, top = samples[-1].connections, 1.25 * max(sample.memory_bytes for sample in samples)
    x = lambda count: LEFT + (WIDTH - LEFT - 20) * count / last  # noqa: E731
    y = lambda size: (HEIGHT - BOTTOM) * (1 - size / top) + 10  # noqa: E731
    line = " ".join(f"{x(s.connections):.1f},{y(s.memory_bytes):.1f}" for s in samples)
    marks = "".join(
        f'<text x="{LEFT - 8}" y="{y(part * top) + 4:.0f}" text-anchor="end">{part * top / 2**20:.0f}</text>'
        f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(part * top):.0f}" y2="{y(part * top):.0f}" stroke="#ddd"/>'
        for part in (0, 0.25, 0.5, 0.75)
    ) + "".join(
        f'<text x="{x(part * last):.0f}" y="{HEIGHT - 12}" text-anchor="middle">{part * last:,.0f}</text>'
        for part in (0, 0.25, 0.5, 0.75, 1)
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{marks}'
        f'<text x="{LEFT}" y="12">MiB of the broker\'s own memory, over connections that came and went</text>'
        f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="1.5"/></svg>\n'
    )
