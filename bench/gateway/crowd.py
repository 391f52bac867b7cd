"""The page with a crowd: 10,000 connections and 1,000,000 topics.

What each request takes, and the first paint in Chromium."""

from __future__ import annotations

import json
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.connections import connect_packet, publish_packet
from bench.gateway.clients import connected
from bench.gateway.running import Running, running
from tests.interop.chromium import Chromium
from tests.interop.chromium import found as browser_here

CONNECTIONS, TOPICS = 10_000, 1_000_000
TOPICS_A_PIECE = 5_000
REQUESTS = (
    "status", "events?level=warning&limit=12", "metrics", "shards", "listeners", "streams",
    "clients?sort=lag&limit=10", "clients?sort=client&offset=5000&limit=50", "clients?client=quiet-77*&limit=50",
    "tree?limit=100", "tree?prefix=bench&limit=100", "topics?sort=rate&limit=50",
    "topics?topic=bench/7/%23&sort=topic&limit=50", "groups?limit=50", "retained?limit=50",
    "history?names=published,delivered,connected&seconds=3600&points=300",
)  # fmt: skip
TIMES = 7
ROWS_MAX = 200
PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)[0] ?? null"


def crowd(runs: int) -> dict[str, float]:
    with running("log.durability=process") as here:
        browser = browser_in(here.folder / "browser")
        made = make_topics(here)
        with connected(here.port, CONNECTIONS):
            http = here.connection()
            found = {f"{TOPICS:,} topics made, s": made}
            rows = 0
            for target in (*(f"/api/v1/{each}" for each in REQUESTS), "/metrics"):
                times = []
                for _ in range(TIMES):
                    started = time.monotonic()
                    status, body = http.get(target)
                    times.append(1e3 * (time.monotonic() - started))
                    if status != 200:
                        raise RuntimeError(f"{target}: {status} {body[:200]!r}")
                if target != "/metrics" and "history" not in target:
                    rows = max(rows, longest(json.loads(body)))
                found[f"{target}: median ms"] = statistics.median(times)
                found[f"{target}: slowest ms"] = max(times)
            if rows > ROWS_MAX:
                raise RuntimeError(f"a list of {rows} rows")
            found["rows of the longest list"] = rows
            if browser is not None:
                found |= painted(browser, here, runs)
                browser.end()
        return found


def make_topics(here: Running) -> float:
    """Publish once to each; returns the seconds that it took."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", here.port), timeout=120) as sock:
        sock.sendall(connect_packet("crowd"))
        assert sock.recv(4)[:1] == b"\x20", "no CONNACK"
        for first in range(0, TOPICS, TOPICS_A_PIECE):
            some = range(first, first + TOPICS_A_PIECE)
            sock.sendall(b"".join(publish_packet(f"bench/{n % 1000}/{n}".encode(), 0, b"21.5") for n in some))
        sock.sendall(publish_packet(b"bench/0/0", 1, b"end").replace(b"\0\0end", b"\0\1end"))
        assert sock.recv(4)[:1] == b"\x40", "no PUBACK"
    return time.monotonic() - started


def longest(found: Any) -> int:
    """Rows of the longest list of objects."""
    return max((len(rows) for rows in lists(found)), default=0)


def lists(found: Any) -> Iterator[list[Any]]:
    if isinstance(found, dict):
        for value in found.values():
            yield from lists(value)
    elif isinstance(found, list):
        yield found
        for value in found:
            yield from lists(value)


def browser_in(folder: Path) -> Chromium | None:
    """Before the crowd comes: it selects descriptors below 1,024."""
    path = browser_here()
    if path is None:
        return None
    folder.mkdir()
    return Chromium(path, folder)


def painted(browser: Chromium, here: Running, runs: int) -> dict[str, float]:
    """First contentful paint of the overview with an empty cache, and when it shows its figures."""
    paints, shown = [], []
    address = f"http://127.0.0.1:{here.http_port}/"
    for _ in range(runs):
        browser._ask("Network.clearBrowserCache")
        browser.open(f"{address}page/icon.svg")
        browser.run(f"sessionStorage.setItem('rumq.token', {here.token!r})")
        browser.open(address)
        browser.until(f"document.querySelector('main h1') !== null && ({PAINT}) !== null")
        paints.append(float(str(browser.run(PAINT))))
        browser.until("document.querySelector('main').innerText.replace(/\\D/g, '').includes('10000')")
        shown.append(float(str(browser.run("performance.now()"))))
    return {
        "first contentful paint, median ms": statistics.median(paints),
        "overview shows the 10,000 connections, median ms": statistics.median(shown),
    }
