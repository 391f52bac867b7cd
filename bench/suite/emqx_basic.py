"""The four scenarios of EMQX's basic set, by its names: how many, at how many a second.

Source: https://github.com/emqx/mqttbs. QoS 1 as there; payloads are of 64 bytes as everywhere here, and a run lasts
seconds where theirs lasts half an hour.
"""

from bench.load.load import Load
from bench.suite.ordinary import OPEN_FIGURES, both_phases
from bench.suite.scenario import Scenario

CONNECT_FIGURES = (
    "cpu_us_per_connect",
    "answered_p50_us",
    "answered_p99_us",
    "answered_p999_us",
    "rss_bytes",
)

EMQX_BASIC: tuple[Scenario, ...] = (
    Scenario(
        "conn-10k-100", "EMQX conn-10k-100, the last of it",
        Load(publishers=10_000, subscribers=0, rate=100), CONNECT_FIGURES, "connect",
    ),
    *both_phases(
        "p2p-1K", "EMQX p2p-1K", Load(publishers=1_000, subscribers=1_000, spread="pairs", qos=1, rate=1_000)
    ),
    # With one publisher there is nothing to be in phase with.
    Scenario(
        "fanout-1-1k-1-1K", "EMQX fanout-1-1k-1-1K",
        Load(publishers=1, subscribers=1_000, qos=1, rate=1, phase="burst", latency=True), OPEN_FIGURES,
    ),
    *both_phases(
        "sharedsub-1K-5-1K-1K", "EMQX sharedsub-1K-5-1K-1K",
        Load(publishers=1_000, subscribers=5, spread="shared", qos=1, rate=1_000),
    ),
)  # fmt: skip
