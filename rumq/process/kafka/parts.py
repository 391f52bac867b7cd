"""The parts of the Kafka server, put together from settings."""

from __future__ import annotations

import hashlib
import os
import time

import trio

from commitlog import RealFiles
from rumq.events.event_log import tell
from rumq.kafka.access.logins import KafkaLogins
from rumq.kafka.access.shares import KafkaShares
from rumq.kafka.answers.connected_client import AdvertisedAddress, FetchBounds, KafkaDoor
from rumq.kafka.groups.commit_file import CommitFile
from rumq.kafka.groups.coordinator import GroupBounds
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.log.committed import CommittedQuestions
from rumq.kafka.log.served_log import KafkaLog
from rumq.kafka.topics.topic_catalog import TopicCatalog, TopicSource
from rumq.process.listeners.broker_secret import maybe_secret
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.settings.table import Settings

ANY_ADDRESS = ("*", "")
LOCK = "kafka-commits.lock"
LOCK_SECONDS, LOCK_AGAIN_SECONDS = 2.0, 0.05  # a killed predecessor may still hold it
GROUP_MEMBERS_MAX = 1_000  # of one group


def door_of(settings: Settings) -> KafkaDoor:
    """Without groups: see `maybe_groups`. raises: ConfigError"""
    kafka, data = settings.kafka, os.path.abspath(settings.data.dir)
    log_id = log_id_of(settings, data)
    committed = None if settings.cluster.name else CommittedQuestions(data, settings.shards.count)
    return KafkaDoor(
        KafkaLog(data, committed), catalog_of(settings, log_id), logins_of(settings),
        FetchBounds(kafka.fetch_bytes_max, KafkaShares(kafka.waiting_bytes_max)),
        cluster_id=f"rumq-{log_id.hex()[:16]}", advertised=advertised_of(settings), clears=kafka.cleared_as_null,
        retention=lambda stream: retention_of(settings, stream), event=tell, now_us=now_us,
    )  # fmt: skip


async def maybe_groups(settings: Settings) -> GroupService | None:
    """None: this node is of a cluster, another process of this data directory serves them, or they cannot be kept here.

    raises: DataDirectoryError for a file of a newer version"""
    if settings.cluster.name:
        return None
    kafka, files, data = settings.kafka, RealFiles(), os.path.abspath(settings.data.dir)
    try:
        await take_lock(files, f"{data}/{LOCK}")
        return GroupService(
            CommitFile(files, data), GroupBounds(kafka.groups_max, GROUP_MEMBERS_MAX, kafka.group_bytes_max),
            int(kafka.offset_retention_seconds * 1000), tell, lambda: now_us() // 1000,
        )  # fmt: skip
    except OSError as fault:
        is_taken = isinstance(fault, BlockingIOError)
        why = "another Kafka server of this data directory serves them" if is_taken else str(fault)
        tell("kafka.groups_refused", why=why)
        return None


async def take_lock(files: RealFiles, path: str) -> None:
    """Until this process ends. raises: OSError, after a while BlockingIOError if another process has it"""
    until = trio.current_time() + LOCK_SECONDS
    while True:
        try:
            files.lock(path, f"{os.getpid()}\n")
            return
        except BlockingIOError:
            if trio.current_time() >= until:
                raise
        await trio.sleep(LOCK_AGAIN_SECONDS)


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
