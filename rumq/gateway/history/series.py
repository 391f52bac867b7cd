"""The series of the history: what each is, and its value between two snapshots of the shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from rumq.gateway.history.snapshot import FiguresSnapshot
from rumq.session.state.histogram import BOUNDS

NAN = float("nan")
Join = Literal["mean", "max", "min"]


class Series(NamedTuple):
    """join: how several samples are one point of a plot"""

    name: str
    unit: str
    help: str
    value: Callable[[FiguresSnapshot, FiguresSnapshot], float]
    join: Join = "mean"


def rate(key: str) -> Callable[[FiguresSnapshot, FiguresSnapshot], float]:
    """Of a counter that every shard counts when it counts its sessions, per second."""
    return lambda before, after: after.counted_rate(before, key)


def growth(key: str) -> Callable[[FiguresSnapshot, FiguresSnapshot], float]:
    """Of a counter that is up to date, per second."""
    return lambda before, after: after.rate(before, key)


def total(key: str) -> Callable[[FiguresSnapshot, FiguresSnapshot], float]:
    return lambda _, after: sum(each.gauges[key] for each in after.shards)


def largest(key: str) -> Callable[[FiguresSnapshot, FiguresSnapshot], float]:
    return lambda _, after: max((each.gauges[key] for each in after.shards), default=NAN)


def quantile(key: str, share: float) -> Callable[[FiguresSnapshot, FiguresSnapshot], float]:
    return lambda before, after: quantile_of(after.observed(before, key), share)


def quantile_of(counts: Sequence[int], share: float) -> float:
    """Of durations in buckets, even within a bucket; NaN if there are none."""
    left = share * sum(counts)
    if not left:
        return NAN
    lower = 0.0
    for bound, count in zip(map(float, BOUNDS), counts, strict=False):
        if count >= left:
            return lower + (bound - lower) * left / count
        left -= count
        lower = bound
    return lower  # of the last bucket, which has no bound


SERIES: Mapping[str, Series] = {
    each.name: each
    for each in (
        Series("published", "messages/s", "PUBLISH packets accepted", rate("messages_published")),
        Series("delivered", "messages/s", "PUBLISH packets sent to clients", rate("messages_delivered")),
        Series("bytes_in", "bytes/s", "MQTT bytes read from clients", rate("received_bytes")),
        Series("bytes_out", "bytes/s", "MQTT bytes sent to clients", rate("sent_bytes")),
        Series("connected", "clients", "clients that are connected", total("connected")),
        Series("sessions", "sessions", "sessions, with and without a connection", total("sessions")),
        Series(
            "behind_records_max", "records", "of the session that is farthest behind", largest("lag_records_max"),
            "max",
        ),
        Series("undelivered", "messages/s", "messages that were not delivered, for any reason", growth("undelivered")),
        Series("acknowledge_p50", "seconds", "publish to acknowledgement, median", quantile("publish_ack", 0.5)),
        Series(
            "acknowledge_p99", "seconds", "publish to acknowledgement, 99 of 100", quantile("publish_ack", 0.99), "max"
        ),
        Series("deliver_p50", "seconds", "publish to delivery, median", quantile("publish_delivery", 0.5)),
        Series("deliver_p99", "seconds", "publish to delivery, 99 of 100", quantile("publish_delivery", 0.99), "max"),
        Series(
            "fsync_p99", "seconds", "write of the log, with fsync where there is one, 99 of 100",
            quantile("log_write", 0.99), "max",
        ),
        Series("turn_p99", "seconds", "turns in which something came, 99 of 100", quantile("turn", 0.99), "max"),
        Series("log_bytes", "bytes", "bytes of all segments", lambda _, after: after.log_bytes),
        Series(
            "disk_free_bytes", "bytes", "free on the disk of the log", lambda _, after: after.disk_free_bytes, "min"
        ),
        Series("memory_bytes", "bytes", "memory of the shards, without mapped files", total("memory_bytes")),
        Series("cpu", "cores", "CPU time of the shards per second", growth("cpu_seconds")),
        Series("handed_over", "messages/s", "messages for partitions of other shards", growth("handed_over")),
    )
}  # fmt: skip


def sampled(before: FiguresSnapshot, after: FiguresSnapshot) -> dict[str, float]:
    return {name: each.value(before, after) for name, each in SERIES.items()}
