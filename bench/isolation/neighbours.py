"""The neighbours, as a table. `bench/README.md` says what each is for, and what is done so that it is the broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

BUSY = {"payload_bytes": 100_000, "messages_per_s": 100}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """act, options: what its process does (`acts.py`)

    harm: what the bench does to the broker meanwhile; peers: whom it can be measured with
    settings: of rumq, beyond its defaults; streams: with prefixes of their own, beside the one for all others
    kafka: rumq serves Kafka's clients as well, at `kafka_port`
    shards: of rumq; the others are clients of the last one, and their topics are its own
    """

    key: str
    title: str
    act: str
    options: Mapping[str, float] = field(default_factory=dict)
    harm: Literal["", "kill a shard", "slow syncs"] = ""
    peers: tuple[str, ...] = ("rumq", "mosquitto")
    settings: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    kafka: bool = False
    shards: int = 1

    @property
    def scenario(self) -> str:
        """Its name among the scenarios, in the JSON and in `targets.toml`."""
        return f"isolation-{self.key}"


def kafka_port(port: int) -> int:
    """Where a broker that serves MQTT at this port serves Kafka's clients."""
    return port + 1


NEIGHBOURS: dict[str, Neighbour] = {
    neighbour.key: neighbour
    for neighbour in (
        Neighbour("spins", "no neighbour: a core kept busy", "spins"),
        Neighbour("never-reads", "a subscriber that never reads", "stops reading", BUSY),
        Neighbour(
            "byte-a-second", "one that reads a byte a second", "stops reading", {**BUSY, "bytes_per_s": 1}
        ),
        Neighbour(
            "floods-qos0", "a flood of QoS 0", "floods", {"qos": 0, "window": 512, "payload_bytes": 1000}
        ),
        Neighbour(
            "floods-qos1", "a flood of QoS 1", "floods", {"qos": 1, "window": 1000, "payload_bytes": 1000}
        ),
        Neighbour(
            "many-subscriptions", "10,000 subscriptions, 100 a packet", "subscribes",
            {"filters": 10_000, "in_packet": 100},
        ),
        Neighbour(
            "one-subscribe", "10,000 subscriptions in one packet", "subscribes",
            {"filters": 10_000, "in_packet": 10_000},
        ),
        Neighbour(
            "replays", "a replay of the whole log", "replays", {"log_bytes": 1e9, "payload_bytes": 4000},
            peers=("rumq",),
        ),
        Neighbour(
            "kafka-readers", "four Kafka consumers of old records", "reads Kafka",
            {"log_bytes": 1e9, "payload_bytes": 64, "consumers": 4}, peers=("rumq",), kafka=True,
        ),
        Neighbour(
            "wildcards", "wildcards on 100,000 retained", "storms",
            {"retained": 100_000, "clients": 4, "subscribes_per_s": 200},
        ),
        Neighbour("connects", "1,000 connects a second", "connects", {"connects_per_s": 1000}),
        Neighbour("killed-shard", "a shard that is killed", "waits", harm="kill a shard", peers=("rumq",), shards=2),
        Neighbour(
            "slow-disk", "another stream's disk takes 500 ms", "waits for its disk", {"messages_per_s": 50},
            harm="slow syncs", peers=("rumq",), streams=("slow",),
        ),
    )
}  # fmt: skip
