"""Figures of a run: what a broker used, and percentiles of samples."""

from array import array
from collections.abc import Iterable

from bench import process
from bench.peers.peer import Broker

Figures = dict[str, float]


def percentiles(of: str, parts: Iterable[bytes]) -> Figures:
    """Percentiles of the samples, exact, in µs; none where nothing was sampled."""
    samples = array("Q", b"".join(parts))
    if not samples:
        return {}
    ordered = sorted(samples)
    return {
        f"{of}_p{name}_us": ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e3
        for name, share in (("50", 0.5), ("99", 0.99), ("999", 0.999), ("100", 1.0))
    }


def cpu(broker: Broker) -> float:
    return process.cpu_s(broker.pid) if broker.pid is not None else 0.0


def memory(broker: Broker) -> float:
    return process.resident_bytes(broker.pid) if broker.pid is not None else float("nan")
