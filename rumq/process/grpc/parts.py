"""The parts of the gRPC server, put together from settings. It imports gRPC, which no other process does."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from functools import partial
from typing import cast

import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.figures import ServiceFigures
from rumq.admin.operations import OPERATIONS
from rumq.errors import RumqError
from rumq.events.event_log import tell
from rumq.flight.serving.call_authorization import CallAuthorization
from rumq.gateway.access.admission import RequestAdmission
from rumq.gateway.broker.cluster_client import ClusterClient
from rumq.gateway.broker.shard_client import ShardClient, ShardQueries
from rumq.gateway.records.partition_views import PartitionViews
from rumq.process.grpc.grpc_queues import queue_door, queues_of
from rumq.process.listeners.gateway_listener import gateway_socket
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.wiring.gateway_settings import tokens_of
from rumq.services.access.callers import Callers
from rumq.services.access.shares import CONNECTION_CALLS_MAX, ShareBound, Shares
from rumq.services.access.waiting_bytes import WaitingBytes
from rumq.services.call_figures import CallFigures
from rumq.services.calls.broker_service import broker_service
from rumq.services.calls.describe_calls import DescribeCalls
from rumq.services.calls.publish_calls import PublishCalls
from rumq.services.calls.read_calls import ReadCalls
from rumq.services.figures_socket import figures_of
from rumq.services.health_watch import watch_health
from rumq.services.publishing.publishers import UserPublishers
from rumq.services.queues.queue_door import QueueDoor
from rumq.services.reading.copy_watch import NOT_STORED, CopyWatch, Led, name_of, watch_copies
from rumq.services.reading.log_tail import FollowedLog
from rumq.services.server import Server
from rumq.settings.table import Settings


@dataclass
class GrpcParts:
    server: Server
    callers: Callers
    tail: FollowedLog
    publishers: UserPublishers
    describe: DescribeCalls
    figures: CallFigures
    authorization: CallAuthorization
    shards: ShardQueries
    copies: CopyWatch
    read: ReadCalls
    shares: tuple[Shares, Shares]
    is_cluster: bool
    door: QueueDoor

    def reload(self, settings: Settings) -> None:
        """raises: ConfigError"""
        policy = ListenerPolicies(settings).grpc()
        tokens = tokens_of(settings)
        self.authorization.replace_rules(policy.authenticator, policy.rules, exact=policy.exact_refusals)
        self.authorization.slow_guesses(settings.auth.guess_seconds_max)
        self.callers.admission.guess_seconds_max = settings.auth.guess_seconds_max
        self.callers.replace(policy.rules, tokens)
        self.tail.wake()

    async def watch_health(self) -> None:
        await watch_health(self._serving, lambda found: self.server.say(is_serving=found[0]))

    def counted(self) -> ServiceFigures:
        """For the gateway's metrics."""
        return figures_of(
            self.figures, published=self.publishers.published, records=self.read.records,
            refused_logins=self.callers.refused, refused_calls=sum(each.refused for each in self.shares),
        )  # fmt: skip

    async def watch_copies(self) -> None:
        """Of a broker alone there is nothing to watch."""
        if self.is_cluster:
            await watch_copies(self.copies, self._led, self._ends, time.monotonic)
        await asyncio.Event().wait()

    async def _led(self) -> list[Led] | None:
        question = partial(self.shards.ask, OPERATIONS["partitions"], q.Nothing())
        try:
            found = cast(a.Partitions, await asyncio.to_thread(trio.run, question))
        except (RumqError, ValueError):
            return None
        if found.missing:
            return None
        return [
            Led(name_of(each.stream, each.partition), each.committed_lsn)
            for each in found.partitions
            if each.durability != NOT_STORED
        ]

    async def _ends(self) -> dict[str, int]:
        try:
            await self.tail.look()
        except OSError:
            return {}
        return {name: view.end_lsn for name, view in self.tail.views.items()}

    async def _serving(self) -> tuple[bool, ...]:
        """Whether the broker does, and each service."""
        return await self._answers(), *self.server.serving

    async def _answers(self) -> bool:
        """Whether the broker of this node does."""
        question = partial(self.shards.ask_here, OPERATIONS["ping"], q.Nothing())
        try:
            await asyncio.to_thread(trio.run, question)
        except (RumqError, ValueError):
            return False
        return True

    async def stop(self, drain_seconds: float) -> None:
        self.tail.wake()
        await self.server.stop(drain_seconds, self.tail.wake)
        await self.publishers.close()
        self.callers.close()
        self.tail.close()
        self.describe.close()


def parts_of(settings: Settings) -> GrpcParts:
    """raises: ConfigError"""
    grpc, data = settings.grpc, settings.data.dir
    node = settings.cluster.node if settings.cluster.name else ""
    policy = ListenerPolicies(settings).grpc()
    authorization = CallAuthorization(
        policy.authenticator, policy.rules, now=time.monotonic, now_us=now_us, wait=time.sleep,
        exact=policy.exact_refusals, guess_seconds_max=settings.auth.guess_seconds_max,
        hashes_max=max(1, (os.cpu_count() or 2) // 2),
    )  # fmt: skip
    admission = RequestAdmission(tokens_of(settings), settings.auth.guess_seconds_max)
    callers = Callers(authorization, admission, policy.rules, now=time.monotonic, now_us=now_us)
    tail = FollowedLog(PartitionViews(data))
    publishers = UserPublishers(gateway_socket(settings), node, tail, settings.mqtt.packet_bytes_max)
    shards: ShardQueries = ClusterClient(data) if node else ShardClient(data, settings.shards.count)
    waiting = ShareBound("grpc.waiting_bytes_max", "bytes", "TOO_MANY_BYTES", grpc.waiting_bytes_max)
    waiting_shares = Shares(waiting)
    waiting_bytes = WaitingBytes(waiting_shares)
    publish = PublishCalls(publishers, waiting_bytes, grpc.request_messages_max)
    copies = CopyWatch()
    read = ReadCalls(tail, copies.check, now_us, tells_publishers=settings.mqtt.publisher_available)
    describe = DescribeCalls(shards)
    door = queue_door(settings, shards, lambda: callers.rules)
    calls = Shares(ShareBound("grpc.calls_max", "calls", "TOO_MANY_CALLS", grpc.calls_max), CONNECTION_CALLS_MAX)
    figures = CallFigures(time.monotonic)
    services = [broker_service(publish, read, describe), queues_of(settings, door, waiting_bytes, now_us)]
    server = Server(
        services, callers, calls, figures, tell,
        calls_max=grpc.calls_max, request_bytes_max=grpc.request_bytes_max,
    )  # fmt: skip
    return GrpcParts(
        server,
        callers,
        tail,
        publishers,
        describe,
        figures,
        authorization,
        shards,
        copies,
        read,
        (calls, waiting_shares),
        bool(node),
        door,
    )


def now_us() -> int:
    return time.time_ns() // 1000
