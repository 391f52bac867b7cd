"""Subscribe and Fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from commitlog.read.partition_view import PartitionView
from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.topics import check_topic_name
from rumq.services.access.callers import GrpcCaller
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault
from rumq.services.contract.requests import parsed
from rumq.services.generated import broker_service_pb2 as pb
from rumq.services.reading.fetch import fetched
from rumq.services.reading.log_tail import FollowedLog
from rumq.services.reading.starts import WantedRecords, begins_of, places_of
from rumq.services.reading.subscription import LogSubscription

Found = TypeVar("Found")


class ReadCalls:
    """check_copies: raises CallFault where this node cannot serve every partition; now_us: µs since 1970

    tells_publishers: as mqtt.publisher_available"""

    def __init__(
        self, tail: FollowedLog, check_copies: Callable[[], None], now_us: Callable[[], int], *, tells_publishers: bool
    ) -> None:
        self._tail, self._check_copies, self._now_us = tail, check_copies, now_us
        self._tells_publishers = tells_publishers
        self.subscriptions = 0
        self.records = 0

    async def subscribe(self, call: Call) -> None:
        request = parsed(pb.SubscribeRequest, await call.request())
        call.caller.check_role("read")
        places = places_of(request)
        self._check_filters(call.caller, places)
        self._check_publishers(request.with_publishers)
        await self._look()
        if request.cursor:
            wanted = WantedRecords.from_cursor(request.cursor, places)
        else:
            views = list(self._tail.views.values())
            wanted = WantedRecords.from_begins(await self._on_log(partial(begins_of, places, views)))
        subscription = LogSubscription(
            wanted, self._tail, call, self._check_copies, self._now_us, with_publishers=request.with_publishers
        )
        self.subscriptions += 1
        told = 0
        try:
            with self._tail.followed():
                await call.begin()
                while True:
                    await call.write(await subscription.next_answer())
                    self.records += subscription.records - told
                    told = subscription.records
        finally:
            self.subscriptions -= 1

    async def fetch(self, call: Call) -> bytes:
        request = parsed(pb.FetchRequest, await call.request())
        call.caller.check_role("read")
        try:
            check_topic_name(request.topic)
        except TopicNameInvalid as fault:
            raise CallFault("TOPIC_INVALID", str(fault)) from None
        if not request.id:
            raise CallFault("ARGUMENT_INVALID", "id is missing: ids begin at 1")
        if not call.caller.may_read(request.topic):
            raise not_readable(call.caller, request.topic)
        self._check_publishers(request.with_publisher)
        await self._look()
        views = list(self._tail.views.values())
        search: Callable[[list[PartitionView]], pb.FetchResponse] = partial(
            fetched, topic=request.topic, message_id=request.id, now_us=self._now_us(),
            with_publisher=request.with_publisher,
        )  # fmt: skip
        return (await self._on_log(partial(search, views))).SerializeToString()

    def _check_filters(self, caller: GrpcCaller, filters: Iterable[str]) -> None:
        for topic_filter in filters:
            if not caller.may_read_any(topic_filter):
                raise not_readable(caller, topic_filter)

    def _check_publishers(self, asked: bool) -> None:
        if asked and not self._tells_publishers:
            raise CallFault(
                "ARGUMENT_INVALID", "this broker does not tell who published: mqtt.publisher_available is false"
            )

    async def _look(self) -> None:
        """At the log as it is now. raises: CallFault"""
        try:
            await self._tail.look()
        except OSError as fault:
            raise unreadable(fault) from None
        self._check_copies()

    async def _on_log(self, call: Callable[[], Found]) -> Found:
        try:
            return await self._tail.on_thread(call)
        except OSError as fault:
            raise unreadable(fault) from None


def unreadable(fault: OSError) -> CallFault:
    return CallFault("LOG_UNREADABLE", f"the log of this node cannot be read: {fault.strerror or fault}")


def not_readable(caller: GrpcCaller, topic: str) -> CallFault:
    return CallFault("NOT_AUTHORIZED", f"the rules do not let {caller.name} read {topic[:200]!r}", topic=topic)
