"""Consumer groups of the Kafka server, put together from settings: those of a broker alone, or the seat of a node."""

from __future__ import annotations

import os
from typing import NamedTuple

import trio

from commitlog import RealFiles
from commitlog.disk.files import Files
from rumq.admin.socket.held_values import ask_of_kafka
from rumq.errors import DataDirectoryError
from rumq.events.event_log import tell
from rumq.kafka.groups.commit_file import NAME, CommitFile
from rumq.kafka.groups.commit_store import CommitsLost, CommitStore
from rumq.kafka.groups.committed_offsets import CommittedOffsets
from rumq.kafka.groups.coordinator import GroupBounds
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.nodes.group_seat import GroupSeat, first_generation
from rumq.kafka.nodes.kafka_nodes import KafkaNodes
from rumq.kafka.nodes.shard_commits import ShardCommits
from rumq.process.kafka.parts import now_us
from rumq.process.listeners.cluster_address import EVERYWHERE, advertised
from rumq.settings.table import Settings

LOCK = "kafka-commits.lock"
LOCK_SECONDS, LOCK_AGAIN_SECONDS = 2.0, 0.05  # a killed predecessor may still hold it
GROUP_MEMBERS_MAX = 1_000  # of one group
NOT_REPLICATED = "no stream has durability quorum, so what is committed would be on one node: set log.durability"


class KafkaGroups(NamedTuple):
    """own: of a broker alone; seat: of a node; None: it is the other, or refused

    may_serve: False: another process of this data directory does; host, port: where clients are told to connect"""

    own: GroupService | None
    seat: GroupSeat | None
    may_serve: bool
    host: str
    port: int

    def address(self, bound: int) -> str:
        """For clients; empty: they are told of another process. bound: the port that was opened"""
        return f"{self.host}:{self.port or bound}" if self.may_serve else ""


async def groups_of(settings: Settings) -> KafkaGroups:
    """raises: DataDirectoryError for a file of a newer version"""
    files, data = RealFiles(), os.path.abspath(settings.data.dir)
    own, may_serve = None, False
    try:
        await take_lock(files, f"{data}/{LOCK}")
        if not settings.cluster.name:
            own = service_of(settings, CommitFile(files, data))
        may_serve = True
    except OSError as fault:
        is_taken = isinstance(fault, BlockingIOError)
        why = "another Kafka server of this data directory serves them" if is_taken else str(fault)
        tell("kafka.groups_refused", why=why)
    seat = seat_of(settings, data) if settings.cluster.name else None
    if seat is not None and seat.refusal:
        tell("kafka.groups_refused", why=seat.refusal)
    return KafkaGroups(own, seat, may_serve, *reachable_kafka(settings))


def seat_of(settings: Settings, data: str) -> GroupSeat:
    async def make(commits: ShardCommits) -> GroupService:
        await inherit(RealFiles(), data, commits)
        return service_of(settings, commits, first_generation(commits.turn))

    is_replicated = settings.cluster.replicas == 1 or any(each.durability == "quorum" for each in settings.stream)
    nodes = KafkaNodes(settings.cluster.node, [each.name for each in settings.stream])
    return GroupSeat(nodes, ask_of_kafka(data), make, tell, "" if is_replicated else NOT_REPLICATED)


async def inherit(files: Files, data: str, commits: ShardCommits) -> None:
    """What groups had committed while this data directory was a broker's alone: it is the cluster's from now on, where
    the cluster has nothing newer. raises: CommitsLost"""
    path = f"{data}/{NAME}"
    if not files.exists(path):
        return
    found = CommittedOffsets(0)
    try:
        found.take(CommitFile(files, data).read())
        await commits.keep_missing(list(found.all()))
        files.rename(path, f"{path}.inherited")
        files.sync_directory(data)
    except CommitsLost:
        raise
    except (OSError, DataDirectoryError) as fault:
        tell("kafka.commits_failed", why=f"{path} is not taken over: {fault}")


def service_of(settings: Settings, store: CommitStore, generation: int = 0) -> GroupService:
    """raises: OSError, DataDirectoryError"""
    kafka = settings.kafka
    return GroupService(
        store, GroupBounds(kafka.groups_max, GROUP_MEMBERS_MAX, kafka.group_bytes_max),
        int(kafka.offset_retention_seconds * 1000), tell, lambda: now_us() // 1000, generation,
    )  # fmt: skip


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


def reachable_kafka(settings: Settings) -> tuple[str, int]:
    """Host and port by which clients reach this node; 0: the one that is opened."""
    host, _, port = settings.kafka.advertised.rpartition(":")
    if host:
        return host, int(port)
    if settings.kafka.host not in EVERYWHERE or not settings.cluster.name:
        return settings.kafka.host, 0
    return advertised(settings)[0], 0
