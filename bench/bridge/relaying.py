"""One load over a bridge: published at one broker, heard at the other one, CPU time of each of the three processes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.connections import BenchFault
from bench.load.generator import Generator
from bench.load.load import Load
from bench.measure.figures import Figures
from bench.measure.measure import traffic
from bench.peers.peer import HOST, Broker, Run, free_port
from bench.peers.rumq import Rumq
from bench.process import process_cpu_s, read, tree
from rumq.bridge.counts import FOLDER, read_figures

UP_S = 30.0
WARM_S = 1.0
ROUND_FACTOR_MAX = 4
LEAD = {0: 2_000, 1: 20_000, 2: 20_000}  # of QoS 0 a bridge drops what has no room
SHOWN = ("sent", "delivered", "delivered_per_s", "lost", "out_of_order_or_twice")
BRIDGE = """
[[bridge]]
name = "bench"
url = "mqtt://{host}:{port}"
topics = ["b/# out {qos}"]
inflight_max = {inflight_max}
"""


def measure(qos: int, seconds: float, inflight_max: int) -> Figures:
    """One publisher, one subscriber. raises: BenchFault"""
    load = Load(publishers=1, subscribers=1, qos=qos, window=1_000 if qos else 0, lead=LEAD[qos])
    with bridged(load, inflight_max) as (edge, centre):
        assert edge.pid is not None and centre.pid is not None
        bridge = bridge_pid(edge.pid)
        with Generator(load, edge.address, heard_at=centre.address) as generator:
            warm = traffic(*generator.run(2**40, WARM_S))
            messages = max(1, round(warm["sent"] / warm["elapsed_s"] * seconds))
            before = cpu_times(edge.pid, bridge, centre.pid)
            figures = traffic(*generator.run(messages, seconds * ROUND_FACTOR_MAX))
            after = cpu_times(edge.pid, bridge, centre.pid)
        shown = {name: figures[name] for name in SHOWN}
        for name, cpu_s in after.items():
            shown[f"{name}_cpu_us_per_message"] = 1e6 * (cpu_s - before[name]) / max(1, figures["sent"])
        return shown


def cpu_times(edge: int, bridge: int, centre: int) -> dict[str, float]:
    """Seconds, by process: of the brokers with all that belongs to them."""
    return {
        "edge": sum(process_cpu_s(each) for each in tree(edge) if each != bridge),
        "bridge": process_cpu_s(bridge),
        "centre": sum(map(process_cpu_s, tree(centre))),
    }


@contextmanager
def bridged(load: Load, inflight_max: int) -> Iterator[tuple[Broker, Broker]]:
    """Two brokers and the bridge between them, which is up: the one that sends, and the other one."""
    with tempfile.TemporaryDirectory(prefix="bench-bridge-") as name:
        runs: list[Run] = []
        try:
            brokers: dict[str, Broker] = {}
            for place in ("centre", "edge"):
                folder, port = Path(name, place), free_port()
                folder.mkdir()
                command = Rumq().command(load, folder, port)
                if place == "edge":
                    text = BRIDGE.format(
                        host=HOST, port=brokers["centre"].address[1], qos=load.qos, inflight_max=inflight_max
                    )
                    (folder / "config.toml").write_text(text)
                    command += ["--config", str(folder / "config.toml")]
                run = Run(f"rumq ({place})", command, folder, (HOST, port))
                runs.append(run)
                brokers[place] = run.begin()
            wait_up(Path(name, "edge", "data"))
            yield brokers["edge"], brokers["centre"]
        finally:
            for run in runs:
                run.end()


def wait_up(data: Path) -> None:
    until = time.monotonic() + UP_S
    while not read_figures(data / FOLDER).get("bench", {}).get("up"):
        if time.monotonic() > until:
            raise BenchFault(f"the bridge is not up within {UP_S:.0f} s")
        time.sleep(0.05)


def bridge_pid(edge: int) -> int:
    """The process of the bridges below a broker. raises: BenchFault"""
    for pid in tree(edge):
        if b"bridge" in read(Path(f"/proc/{pid}/cmdline")).encode().split(b"\0"):
            return pid
    raise BenchFault("the broker has no process of bridges")
