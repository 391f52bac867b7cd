"""What watching costs the shards: the page's polls and Prometheus each second, beside a load.

Compared are a broker without gateway, one whose gateway only samples its history, and one that is watched: every
request of the overview each second (the page asks every 5 to 15 s), a long poll of events, and /metrics each second.
Runs are interleaved, medians are shown."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.gateway.clients import connected
from bench.gateway.running import Running, running

VARIANTS = ("no gateway", "idle", "watched")
EACH_SECOND = (
    "/api/v1/status", "/api/v1/events?level=warning&limit=12", "/api/v1/metrics", "/api/v1/shards", "/api/v1/listeners",
    "/api/v1/clients?sort=lag&limit=10",
    "/api/v1/history?names=published,delivered,connected,sessions,deliver_p99,turn_p99&seconds=3600&points=300",
    "/metrics",
)  # fmt: skip
LOADS = {
    "ten-to-ten-qos1": ("delivered_per_s", "acknowledged QoS 1, msg/s"),
    "pairs-500": ("latency_p99_us", "5,000 msg/s in 500 pairs, p99 us"),
}
ALONE = "1,000 quiet clients, % of a core for the shards"
CLIENTS = 1_000
EVENTS = "/api/v1/events?wait=20&limit=200"


def watched(runs: int, seconds: float, *, realtime: bool = False) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for run in range(runs):
        for variant in VARIANTS[run % 3 :] + VARIANTS[: run % 3]:
            gateway = "gateway.port=0" if variant == "no gateway" else "gateway.port=-1"
            with running("log.durability=process", gateway) as here:
                if realtime:
                    first(here.shards)
                asked: list[float] = []
                with watching(here, asked) if variant == "watched" else nullcontext():
                    for load, (figure, words) in LOADS.items():
                        measured = loaded(here, load, seconds, realtime=realtime)
                        found.setdefault(f"{words}: {variant}", []).append(measured[figure])
                    found.setdefault(f"{ALONE}: {variant}", []).append(standing(here, seconds))
                if asked:
                    found.setdefault("requests answered a second: watched", []).append(asked[0] / asked[1])
    middle = {name: statistics.median(values) for name, values in sorted(found.items())}
    for name in [f"{words}: watched" for _, words in LOADS.values()]:
        for variant in VARIANTS[:2]:
            base = middle[name.replace(": watched", f": {variant}")]
            middle[name.replace(": watched", f": watched / {variant}")] = middle[name] / base
    return dict(sorted(middle.items()))


def loaded(here: Running, scenario: str, seconds: float, *, realtime: bool) -> dict[str, float]:
    """One run of an ordinary scenario against this broker, with the messages of its calibration."""
    out = here.folder / "out.json"
    subprocess.run(
        [sys.executable, "-m", "bench", "--scenario", scenario, "--peers", "rumq", "--runs", "1",
         "--seconds", str(seconds), "--broker-address", f"127.0.0.1:{here.port}", "--pid", str(here.shards[-1]),
         "--json", str(out), *(["--realtime"] if realtime else [])],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    (result,) = json.loads(out.read_text())["results"]
    figures: dict[str, float] = result["median"]
    if figures["lost"] or result["faults"]:
        raise RuntimeError(f"{scenario}: {figures['lost']} lost, {result['faults']}")
    return figures


def standing(here: Running, seconds: float) -> float:
    """CPU time of the shards with a thousand clients that say nothing, in percent of a core."""
    with connected(here.port, CLIENTS):
        before, started = here.shards_cpu_s(), time.monotonic()
        time.sleep(2 * seconds)
        return 100 * (here.shards_cpu_s() - before) / (time.monotonic() - started)


def first(pids: list[int]) -> None:
    """The shards before all else, as the generator: then it is their time that is compared, not the machine's."""
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(1))


@contextmanager
def watching(here: Running, counts: list[float]) -> Iterator[None]:
    """A page that is open and a scraper. counts: becomes [requests answered, seconds]"""
    ended = threading.Event()
    counts += [0.0, 0.0]
    started = time.monotonic()

    def each_second() -> None:
        http = here.connection()
        while not ended.wait(max(0.0, 1.0 - (time.monotonic() - started) % 1.0)):
            for target in EACH_SECOND:
                status, body = http.get(target)
                if status != 200:
                    raise RuntimeError(f"{target}: {status} {body[:200]!r}")
                counts[0] += 1
        http.close()

    def long_poll() -> None:
        http = here.connection()
        after = ""
        while not ended.is_set():
            try:
                _, body = http.get(EVENTS + after)
            except (OSError, IndexError):
                return  # the broker has ended
            after = f"&after={json.loads(body)['cursor']}"
        http.close()

    threads = [threading.Thread(target=each_second), threading.Thread(target=long_poll, daemon=True)]
    for thread in threads:
        thread.start()
    yield
    ended.set()
    threads[0].join()
    counts[1] = time.monotonic() - started
