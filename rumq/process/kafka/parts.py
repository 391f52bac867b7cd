"""The parts of the Kafka server, put together from settings."""

from __future__ import annotations

import hashlib
import os
import time

from rumq.events.event_log import tell
from rumq.kafka.access.logins import KafkaLogins
from rumq.kafka.access.shares import KafkaShares
from rumq.kafka.answers.connected_client import AdvertisedAddress, FetchBounds, KafkaDoor
from rumq.kafka.log.committed import CommittedQuestions
from rumq.kafka.log.served_log import KafkaLog
from rumq.kafka.topics.topic_catalog import TopicCatalog, TopicSource
from rumq.process.listeners.broker_secret import maybe_secret
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.settings.table import Settings

ANY_ADDRESS = ("*", "")


def door_of(settings: Settings) -> KafkaDoor:
    """Without groups: see `group_parts`. raises: ConfigError"""
    kafka, data = settings.kafka, os.path.abspath(settings.data.dir)
    log_id = log_id_of(settings, data)
    committed = None if settings.cluster.name else CommittedQuestions(data, settings.shards.count)
    return KafkaDoor(
        KafkaLog(data, committed), catalog_of(settings, log_id), logins_of(settings),
        FetchBounds(kafka.fetch_bytes_max, KafkaShares(kafka.waiting_bytes_max)),
        cluster_id=f"rumq-{log_id.hex()[:16]}", advertised=advertised_of(settings), clears=kafka.cleared_as_null,
        retention=lambda stream: retention_of(settings, stream), event=tell, now_us=now_us,
    )  # fmt: skip


def log_id_of(settings: Settings, data: str) -> bytes:
    """Of the cluster, else of the data directory: its secret is made with it, and tells nobody anything as a hash."""
    cluster = settings.cluster.name
    secret = cluster.encode() if cluster else maybe_secret(data) or data.encode()
    return hashlib.sha256(b"kafka log\0" + secret).digest()


def catalog_of(settings: Settings, log_id: bytes) -> TopicCatalog:
    sources = [TopicSource(each.name, each.name, each.filters) for each in settings.stream]
    sources += [TopicSource(each.name, each.stream, (each.filter,), each.filter) for each in settings.kafka_view]
    return TopicCatalog(sources, log_id)


def logins_of(settings: Settings) -> KafkaLogins:
    """raises: ConfigError"""
    policy = ListenerPolicies(settings).kafka()
    return KafkaLogins(
        policy.authenticator, policy.rules, now=time.monotonic, now_us=now_us, wait=time.sleep,
        exact=policy.exact_refusals, guess_seconds_max=settings.auth.guess_seconds_max,
        hashes_max=max(1, (os.cpu_count() or 2) // 2),
    )  # fmt: skip


def advertised_of(settings: Settings) -> AdvertisedAddress | None:
    """None: the address that a client came in at."""
    host, _, port = settings.kafka.advertised.rpartition(":")
    return AdvertisedAddress(host.strip("[]"), int(port)) if host else None


def retention_of(settings: Settings, name: str) -> dict[str, str]:
    """As Kafka's tools name it; -1: no bound."""
    stream = next(each for each in settings.stream if each.name == name)
    seconds = stream.retention_seconds_max
    return {
        "cleanup.policy": "delete",
        "retention.bytes": str(stream.retention_bytes_max or -1),
        "retention.ms": str(int(seconds * 1000) if seconds else -1),
    }


def now_us() -> int:
    return time.time_ns() // 1000
