"""DescribeTopics, DescribeStreams, DescribeClients, Broadcast: the shards are asked over their admin sockets."""

from __future__ import annotations

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import streams_of
from rumq.admin.operations import OPERATIONS, RequestRefused
from rumq.errors import RumqError
from rumq.gateway.access.admission import Forbidden
from rumq.gateway.access.tokens import Token
from rumq.gateway.access.topic_access import TopicAccess
from rumq.gateway.broker.shard_client import ShardAway, ShardQueries
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import check_topic_filter
from rumq.services.access.callers import GrpcCaller
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault
from rumq.services.contract.requests import next_page, page_of, parsed
from rumq.services.generated import broker_service_pb2 as pb

ASKED_MAX = 8  # questions at once
BROADCAST_BYTES_MAX = q.BROADCAST_TEXT_MAX // 4 * 3


class DescribeCalls:
    def __init__(self, shards: ShardQueries) -> None:
        self._shards = shards
        self._threads = ThreadPoolExecutor(ASKED_MAX, "ask")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def topics(self, call: Call) -> bytes:
        request = parsed(pb.DescribeTopicsRequest, await call.request())
        call.caller.check_role("read")
        limit, skipped = page_of(request.page_size, request.page_token)
        if request.filter:
            try:
                check_topic_filter(request.filter)
            except TopicFilterInvalid as fault:
                raise CallFault("TOPIC_INVALID", str(fault)) from None
        asked = q.Topics(topic=request.filter or None, sort="topic", limit=limit, offset=skipped)
        found = cast(a.Topics, await self.ask("topics", asked, call.caller))
        rows = [
            pb.Topic(
                topic=row.topic, stream=row.stream, partition=row.partition, last_id=row.records,
                records_per_second=row.records_per_second,
            )
            for row in found.topics
        ]  # fmt: skip
        token = next_page(skipped, len(rows), found.left_out)
        return pb.DescribeTopicsResponse(topics=rows, next_page_token=token).SerializeToString()

    async def streams(self, call: Call) -> bytes:
        parsed(pb.DescribeStreamsRequest, await call.request())
        call.caller.check_role("read", of_token=True)
        found = cast(a.Partitions, await self.ask("partitions", q.Nothing(), call.caller))
        rows = [
            pb.Stream(
                stream=row.stream, durability=row.durability, partitions=row.partitions, records=row.records,
                bytes=row.bytes, topics=row.topics, offline_partitions=row.offline,
            )
            for row in streams_of(found.partitions).streams
        ]  # fmt: skip
        return pb.DescribeStreamsResponse(streams=rows).SerializeToString()

    async def clients(self, call: Call) -> bytes:
        request = parsed(pb.DescribeClientsRequest, await call.request())
        call.caller.check_role("read", of_token=True)
        limit, skipped = page_of(request.page_size, request.page_token)
        asked = q.Clients(
            client=request.clients or None, user=request.user or None, sort="client", limit=limit, offset=skipped
        )
        found = cast(a.Clients, await self.ask("clients", asked, call.caller))
        rows = [
            pb.Client(
                client_id=row.client_id, user=row.user or "", connected=row.connected, address=row.address or "",
                protocol=row.protocol, published=row.published, delivered=row.delivered,
                behind_records=row.behind_records, subscriptions=row.subscriptions,
            )
            for row in found.clients
        ]  # fmt: skip
        token = next_page(skipped, len(rows), found.left_out)
        return pb.DescribeClientsResponse(clients=rows, next_page_token=token).SerializeToString()

    async def broadcast(self, call: Call) -> bytes:
        request = parsed(pb.BroadcastRequest, await call.request())
        call.caller.check_role("administer", of_token=True)
        message = request.message
        if not request.clients or not message.topic:
            raise CallFault("ARGUMENT_INVALID", 'clients and message.topic are needed; clients = "*" names everybody')
        if message.retain or message.user_properties or message.response_topic or message.correlation_data:
            raise CallFault(
                "ARGUMENT_INVALID", "a broadcast has a topic, a payload, a content type and an expiry, and no more"
            )
        if len(message.payload) > BROADCAST_BYTES_MAX:
            raise CallFault(
                "MESSAGE_TOO_LARGE",
                f"the payload has {len(message.payload)} bytes, and a broadcast takes {BROADCAST_BYTES_MAX}",
                bytes=len(message.payload), limit=BROADCAST_BYTES_MAX,
            )  # fmt: skip
        asked = q.Broadcast(
            clients=request.clients, topic=message.topic, payload=base64.b64encode(message.payload).decode(),
            encoding="base64", content_type=message.content_type, expiry_seconds=message.expiry_seconds,
        )  # fmt: skip
        found = cast(a.Broadcasted, await self.ask("broadcast", asked, call.caller))
        answer = pb.BroadcastResponse(named=found.named, sent=found.sent, dropped=found.dropped)
        return answer.SerializeToString()

    async def ask(self, name: str, asked: q.Request, caller: GrpcCaller) -> a.Answer:
        """Ask every shard, for this caller. raises: CallFault"""
        operation = OPERATIONS[name]
        access = TopicAccess(caller.token or as_token(caller), caller.permit)
        try:
            access.check(operation.tells, asked)
            question = partial(self._shards.ask, operation, asked, access.maybe_reader(operation.tells))
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, partial(trio.run, question))
        except Forbidden as fault:
            raise CallFault("NOT_AUTHORIZED", str(fault)) from None
        except RequestRefused as fault:
            raise CallFault("ARGUMENT_INVALID", str(fault)) from None
        except ShardAway as fault:
            raise CallFault("BROKER_AWAY", str(fault)) from None
        except (RumqError, ValueError) as fault:
            raise CallFault("BROKER_AWAY", f"the broker answers what is not understood here: {fault}") from None
        access.leave_out(operation.tells, answer)
        return answer


def as_token(caller: GrpcCaller) -> Token:
    """Of a user without one."""
    return Token(caller.name, caller.roles, caller.user or "")
