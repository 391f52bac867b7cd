"""The scenarios, as a table. `bench/README.md` says what each is for."""

import msgspec

from bench.load.load import Load
from bench.suite.emqx_basic import EMQX_BASIC
from bench.suite.ordinary import ORDINARY
from bench.suite.scenario import PACED_FIGURES, REDELIVERY_FIGURES, TOPICS_FIGURES, Scenario

# Of one session that was away: four publishers have left 100,000 messages, and the broker is killed.
WAITING = Load(publishers=4, subscribers=1, window=50, lasting=True, killed=True)

SCENARIOS: dict[str, Scenario] = {
    scenario.key: scenario
    for scenario in (
        Scenario("one-to-one-qos0", "1:1 QoS 0", Load(publishers=1, subscribers=1)),
        Scenario(
            "ten-to-ten-qos0", "10:10 QoS 0, 10 topics",
            Load(publishers=10, subscribers=10, spread="pairs"),
        ),
        Scenario("fan-out-qos0", "fan-out 1:50 QoS 0", Load(publishers=1, subscribers=50, lead=5_000)),
        Scenario(
            "thousand-topics-qos0", "1,000 topics on one connection",
            Load(publishers=1, subscribers=1, topics=1000),
        ),
        Scenario(
            "million-topics-qos0", "1,000,000 topics on one connection",
            Load(publishers=1, subscribers=1, topics=1_000_000),
        ),
        Scenario(
            "one-topic-paced", "1 topic at 200,000 msg/s",
            Load(publishers=1, subscribers=1, rate=200_000, latency=True), TOPICS_FIGURES,
        ),
        Scenario(
            "million-topics-paced", "1,000,000 topics at 200,000 msg/s",
            Load(publishers=1, subscribers=1, topics=1_000_000, rate=200_000, latency=True), TOPICS_FIGURES,
        ),
        Scenario(
            "ten-to-ten-qos1", "10:10 QoS 1, window 100",
            Load(publishers=10, subscribers=10, spread="pairs", qos=1, window=100),
        ),
        Scenario(
            "ten-to-ten-qos1-lasting", "10:10 QoS 1, lasting sessions",
            Load(publishers=10, subscribers=10, spread="pairs", qos=1, window=100, lasting=True),
        ),
        Scenario(
            "fan-out-qos1", "fan-out 1:50 QoS 1, window 100",
            Load(publishers=1, subscribers=50, qos=1, window=100, lead=5_000),
        ),
        Scenario(
            "one-to-one-qos1", "1:1 QoS 1, window 200",
            Load(publishers=1, subscribers=1, qos=1, window=200),
        ),
        Scenario(
            "ten-to-ten-qos2", "10:10 QoS 2, window 100",
            Load(publishers=10, subscribers=10, spread="pairs", qos=2, window=100),
        ),
        Scenario(
            "ten-to-ten-qos2-lasting", "10:10 QoS 2, lasting sessions",
            Load(publishers=10, subscribers=10, spread="pairs", qos=2, window=100, lasting=True),
        ),
        Scenario(
            "many-publishers", "10,000 connections, 20,000 msg/s",
            Load(publishers=10_000, subscribers=1, rate=20_000), PACED_FIGURES,
        ),
        Scenario(
            "fifty-to-fifty", "50 to 50 at 10,000 msg/s",
            Load(publishers=50, subscribers=50, spread="pairs", rate=10_000, latency=True),
            ("cpu_us_per_message", "latency_p50_us", "latency_p99_us", "lost"),
        ),
        Scenario(
            "idle-connections", "10,000 idle connections",
            Load(publishers=10_000, subscribers=0), ("bytes_per_connection",), "idle",
        ),
        Scenario(
            "start", "start to accepting",
            Load(publishers=0, subscribers=0), ("start_s", "rss_bytes"), "start",
        ),
        *(
            Scenario(
                f"redelivery-qos{qos}{f'-{limit}' if limit else ''}",
                f"100,000 waiting after kill -9, QoS {qos}{f', {limit} in flight' if limit else ''}",
                msgspec.structs.replace(WAITING, qos=qos, inflight_max=limit), REDELIVERY_FIGURES, "redelivery",
            )
            for qos in (1, 2)
            for limit in (0, 100)
        ),
        *ORDINARY,
        *EMQX_BASIC,
    )
}  # fmt: skip
