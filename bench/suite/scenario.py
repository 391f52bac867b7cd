"""What a scenario is: a load, and the figures that the table shows of it."""

from dataclasses import dataclass
from typing import Literal

from bench.load.load import Load

TRAFFIC_FIGURES = ("delivered_per_s", "lost", "cpu_us_per_delivery", "rss_bytes")
TOPICS_FIGURES = ("latency_p50_us", "latency_p99_us", "cpu_us_per_message", "lost", "rss_bytes")
REDELIVERY_FIGURES = ("delivered_per_s", "lost", "cpu_us_per_delivery", "restart_s", "rss_bytes")
PACED_FIGURES = ("cpu_us_per_message", "lost", "rss_bytes")


@dataclass(frozen=True, slots=True)
class Scenario:
    """kind: "traffic" sends `load`; "idle" only connects its publishers; "start" only starts the broker; "ping" and
    "connect" have connections that ping, or that come, at the load's rate; "redelivery" kills the broker while messages
    wait for a session.

    figures: what the table shows, the one that matters first; all figures are in the JSON.
    """

    key: str
    title: str
    load: Load
    figures: tuple[str, ...] = TRAFFIC_FIGURES
    kind: Literal["traffic", "idle", "start", "ping", "connect", "redelivery"] = "traffic"
