"""One call of Subscribe: what is next for it, and the wait for more. docs/decisions/0060-grpc.md

It holds one buffer and a place in each partition; the log is the queue. Rights are looked at before every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from rumq.services.access.callers import GrpcCaller
from rumq.services.contract.faults import CallFault
from rumq.services.generated.broker_service_pb2 import SubscribeResponse
from rumq.services.reading.log_tail import FollowedLog
from rumq.services.reading.partition_read import PartitionRead
from rumq.services.reading.starts import WantedRecords

ANSWER_BYTES_MAX = 1 << 18  # of an answer, but for a single larger record
BUFFER_BYTES = ANSWER_BYTES_MAX + (1 << 16)
EXAMINED_BYTES_MAX = 8 << 20  # of the log, before it is looked whether the call goes on
LOOK_SECONDS = 2.0  # between looks at rights while nothing comes


class OpenCall(Protocol):
    """`rumq.services.calls.call.Call`"""

    @property
    def caller(self) -> GrpcCaller: ...

    async def look_again(self) -> GrpcCaller: ...


class LogSubscription:
    """now_us: µs since 1970; check_copies: raises CallFault where this node cannot go on; records: sent so far"""

    def __init__(
        self, wanted: WantedRecords, tail: FollowedLog, call: OpenCall, check_copies: Callable[[], None],
        now_us: Callable[[], int], *, with_publishers: bool,
    ) -> None:  # fmt: skip
        self._wanted, self._tail, self._now_us = wanted, tail, now_us
        self._call, self._check_copies = call, check_copies
        self._caller = call.caller
        self._with_publishers = with_publishers
        self._reads: dict[str, PartitionRead] = {}
        self._turn = 0
        self._buffer = bytearray()
        self._has_said_caught_up = False
        self.records = 0

    async def next_answer(self) -> bytes:
        """A serialized SubscribeResponse, waited for. raises: CallFault"""
        while True:
            moved = self._tail.moved
            await self._look_at_rights()
            lost = self._begin()
            try:
                if all(each.is_in_memory for each in self._reads.values()):
                    data, more_lost = self._fill()
                    await asyncio.sleep(0)
                else:
                    data, more_lost = await self._tail.on_thread(self._fill)
            except OSError as fault:
                raise CallFault("LOG_UNREADABLE", f"the log cannot be read: {fault.strerror or fault}") from None
            lost += more_lost
            is_at_end = self._is_at_end()
            if data or lost or (is_at_end and not self._has_said_caught_up):
                return self._answer(data, lost, is_at_end)
            if is_at_end:
                self._buffer = bytearray()  # who waits holds nothing
                try:
                    async with asyncio.timeout(LOOK_SECONDS):
                        await moved.wait()
                except TimeoutError:
                    pass

    async def _look_at_rights(self) -> None:
        self._check_copies()
        caller = await self._call.look_again()
        if caller is not self._caller:
            self._caller = caller
            for each in self._reads.values():
                each.forget_topics()

    def _begin(self) -> int:
        """Take the newest views; returns how many records retention has removed meanwhile."""
        lost = 0
        for name, view in self._tail.views.items():
            read = self._reads.get(name)
            if read is None:
                # A partition that is new since is read from its begin.
                at = self._wanted.at.setdefault(name, view.first_lsn)
                read = self._reads[name] = PartitionRead(
                    name, at, self._decide, self._tail, with_publishers=self._with_publishers
                )
            lost += read.begin(view)
        return lost

    def _decide(self, topic: str, partition: str) -> tuple[int, int] | None:
        return self._wanted.from_where(topic, partition, self._caller.may_read)

    def _fill(self) -> tuple[bytes, int]:
        """Records of some partitions, which take turns, and how many were lost. raises: OSError"""
        if len(self._buffer) < BUFFER_BYTES:
            self._buffer = bytearray(BUFFER_BYTES)
        reads = [each for each in self._reads.values() if each.at < each.end]
        parts: list[bytes] = []
        size = lost = examined = 0
        now_us = self._now_us()
        self._turn += 1
        for number in range(len(reads)):
            read = reads[(number + self._turn) % len(reads)]
            left = len(reads) - number
            found = read.fill(
                self._buffer, (ANSWER_BYTES_MAX - size) // left + 1, (EXAMINED_BYTES_MAX - examined) // left + 1, now_us
            )
            if found.data:
                parts.append(found.data)
            size += len(found.data)
            lost += found.lost
            examined += found.examined
            self.records += found.records
        if len(self._buffer) > 4 * BUFFER_BYTES:
            self._buffer = bytearray()  # a single large record made it grow
        for read in self._reads.values():
            self._wanted.at[read.name] = read.at
        return b"".join(parts), lost

    def _is_at_end(self) -> bool:
        return (
            all(
                read.at >= read.end and read.end >= self._tail.views[name].end_lsn
                for name, read in self._reads.items()
                if name in self._tail.views
            )
            and self._reads.keys() >= self._tail.views.keys()
        )

    def _answer(self, data: bytes, lost: int, is_at_end: bool) -> bytes:
        self._has_said_caught_up |= is_at_end
        rest = SubscribeResponse(cursor=self._wanted.text(), caught_up=is_at_end, lost=lost)
        return data + rest.SerializeToString()  # fields of one message, in two parts
