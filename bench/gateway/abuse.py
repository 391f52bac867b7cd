"""Clients that misbehave at the gateway, and what others notice of it at the shards: throughput and p99.

All at once: ten thousand idle connections, scrapers that never read, clients that vanish in the middle of a request,
a thousand a second, bodies beyond the limit, and a flood of wrong tokens. Runs with and without are interleaved."""

from __future__ import annotations

import contextlib
import socket
import statistics
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from bench.gateway.running import Http, Running, running
from bench.gateway.watched import LOADS, first, loaded

IDLE, SCRAPERS, VANISHING = 10_000, 20, 1_000
RESET = struct.pack("ii", 1, 0)
PAUSE_SECONDS = 0.05
SECONDS_MAX = 1.0  # that an act waits for the gateway


def abuse(runs: int, seconds: float, *, realtime: bool = False) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for run in range(runs):
        for variant in ("alone", "abused")[:: 1 if run % 2 else -1]:
            with running("log.durability=process") as here:
                if realtime:
                    first(here.shards)
                counts: Counter[str] = Counter()
                with abused(here, counts) if variant == "abused" else nullcontext():
                    for load, (figure, words) in LOADS.items():
                        measured = loaded(here, load, seconds, realtime=realtime)
                        found.setdefault(f"{words}: {variant}", []).append(measured[figure])
                    if variant == "abused":
                        for name, count in counts.items():
                            found.setdefault(f"abuse: {name}", []).append(count)
                        found.setdefault("abuse: a right token is answered in ms", []).append(asked(here))
                told = Counter(each["event"] for each in here.events)
                for name in ("gateway.overloaded", "gateway.failed", "gateway.refused"):
                    found.setdefault(f"events {name}: {variant}", []).append(told[name])
    middle = {name: statistics.median(values) for name, values in sorted(found.items())}
    for _, words in LOADS.values():
        middle[f"{words}: abused / alone"] = middle[f"{words}: abused"] / middle[f"{words}: alone"]
    return dict(sorted(middle.items()))


def asked(here: Running) -> float:
    """How long somebody waits who has a right."""
    started = time.monotonic()
    status, _ = here.connection().get("/api/v1/status")
    if status != 200:
        raise RuntimeError(f"{status} to a right token")
    return 1e3 * (time.monotonic() - started)


@contextmanager
def abused(here: Running, counts: Counter[str]) -> Iterator[None]:
    """counts: of what was done"""
    ended = threading.Event()
    held: list[socket.socket] = []
    acts = (scrape_unread, vanish, send_too_much, guess)
    idle(here, held, counts)
    threads = [threading.Thread(target=again, args=(act, here, counts, ended, held)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for sock in held:
            sock.close()


Act = Callable[[Running, Counter[str], list[socket.socket]], None]


def again(act: Act, here: Running, counts: Counter[str], ended: threading.Event, held: list[socket.socket]) -> None:
    while not ended.wait(PAUSE_SECONDS):
        with contextlib.suppress(OSError, IndexError, ValueError):  # the gateway has hung up
            act(here, counts, held)


def connect(here: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", here.http_port), timeout=SECONDS_MAX)


def idle(here: Running, held: list[socket.socket], counts: Counter[str]) -> None:
    for _ in range(IDLE):
        held.append(socket.create_connection(("127.0.0.1", here.http_port), timeout=30))
        counts["idle connections"] += 1


def scrape_unread(here: Running, counts: Counter[str], held: list[socket.socket]) -> None:
    """Ask for more than buffers hold, and read nothing."""
    http = here.connection()
    held.append(http.socket)
    http.socket.settimeout(0.2)
    request = http.head("GET", "/metrics")
    for _ in range(SCRAPERS):
        http.socket.sendall(request)
        counts["scrapes that nobody reads"] += 1


def vanish(here: Running, counts: Counter[str], held: list[socket.socket]) -> None:
    """A half of a request, and a reset."""
    for _ in range(VANISHING // 20):
        sock = connect(here)
        sock.sendall(b"POST /api/v1/publish HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n[{")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.close()
        counts["clients that vanish"] += 1


def send_too_much(here: Running, counts: Counter[str], held: list[socket.socket]) -> None:
    http = here.connection()
    http.socket.settimeout(SECONDS_MAX)
    http.socket.sendall(http.head("POST", "/api/v1/publish", "transfer-encoding: chunked\r\n"))
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    counts["bodies beyond the limit"] += 1
    try:
        for _ in range(100):
            http.socket.sendall(piece)
    finally:
        http.close()


def guess(here: Running, counts: Counter[str], held: list[socket.socket]) -> None:
    """Wrong tokens, on connections of their own, whose answers nobody waits for."""
    for number in range(50):
        http = Http(here.http_port, f"rumq_{number}", SECONDS_MAX)
        http.socket.sendall(http.head("GET", "/api/v1/status"))
        held.append(http.socket)
        counts["wrong tokens"] += 1
