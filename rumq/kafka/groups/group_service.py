"""Groups as the server has them: who waits is woken, time passes, and commits are kept before they are answered.

Commits that come together are written together. In a cluster it serves while its node coordinates; `end` is its end."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import trio

from rumq.kafka.groups.commit_entries import Commit, Entry, Forget
from rumq.kafka.groups.commit_store import CommitsLost, CommitStore
from rumq.kafka.groups.committed_offsets import CommittedOffsets
from rumq.kafka.groups.coordinator import LOOK_SECONDS, SESSION_SECONDS_MAX, GroupBounds, GroupCoordinator
from rumq.kafka.groups.messages import JoinAnswer, JoinRequest, KafkaGroupKey, Leaver, Sender, SyncAnswer, SyncRequest
from rumq.kafka.protocol.errors import ErrorCode

CLIENT_ID_CHARACTERS = 64  # of a member's id
EXPIRY_SECONDS = 60.0  # between looks for offsets that have expired
RENEWALS = 8  # of the offsets of a group in use, within the time for which they are kept
ENTRIES_MAX = 10_000  # that are written at once
Event = Callable[..., None]


class WaitingReply:
    """One that a task waits for."""

    def __init__(self) -> None:
        self._answer: Any = None
        self._is_there = trio.Event()

    def answer(self, answer: Any) -> None:
        self._answer = answer
        self._is_there.set()

    async def wait(self) -> Any:
        await self._is_there.wait()
        return self._answer


class PendingWrite:
    """Entries that are yet to be written. make: them, when all before are in memory; count: as many at most

    end_way: they were tried: called also when nobody waits any more; is_written: of those that were tried"""

    def __init__(self, make: Callable[[], Sequence[Entry]], count: int, end_way: Callable[[], None]) -> None:
        self.make, self.count, self.end_way = make, count, end_way
        self.is_done = trio.Event()
        self.is_written = False

    def end(self) -> None:
        self.end_way()
        self.is_done.set()


class GroupService:
    """offsets: what is in the file; coordinator: members"""

    def __init__(
        self, file: CommitStore, bounds: GroupBounds, keep_ms: int, event: Event, now_ms: Callable[[], int],
        generation: int = 0,
    ) -> None:  # fmt: skip
        """keep_ms: how long offsets of a group without members are kept; generation: behind which those of groups
        begin. raises: OSError, DataDirectoryError"""
        self._file, self._keep_ms, self._event, self._now_ms = file, keep_ms, event, now_ms
        self.offsets = CommittedOffsets(bounds.bytes)
        self.coordinator = GroupCoordinator(bounds, member_id_of, generation)
        self.offsets.take(file.read())
        if file.damage:
            event("kafka.commits_damaged", why=file.damage)
        self._queue: list[PendingWrite] = []
        self._on_the_way: list[PendingWrite] = []
        self._used: set[KafkaGroupKey] = set()  # groups with offsets that had members since the last look
        self._wanted = trio.Event()
        self._changed = trio.Event()
        self._has_ended = False
        self.commits = 0

    # Members

    async def join(self, key: KafkaGroupKey, network: str, request: JoinRequest) -> JoinAnswer:
        if self._has_ended:
            return JoinAnswer(ErrorCode.NOT_COORDINATOR, request.member_id)
        reply = WaitingReply()
        answer = self.coordinator.join(key, network, request, trio.current_time(), reply)
        if self.offsets.of(key) and self.coordinator.has_members(key):
            self._used.add(key)
        self._changed.set()
        return answer if answer is not None else await reply.wait()

    async def sync(self, key: KafkaGroupKey, request: SyncRequest) -> SyncAnswer:
        if self._has_ended:
            return SyncAnswer(ErrorCode.NOT_COORDINATOR)
        reply = WaitingReply()
        answer = self.coordinator.sync(key, request, trio.current_time(), reply)
        self._changed.set()
        return answer if answer is not None else await reply.wait()

    def heartbeat(self, key: KafkaGroupKey, sender: Sender) -> ErrorCode:
        if self._has_ended:
            return ErrorCode.NOT_COORDINATOR
        return self.coordinator.heartbeat(key, sender, trio.current_time())

    def leave(self, key: KafkaGroupKey, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        if self._has_ended:
            return [ErrorCode.NOT_COORDINATOR] * len(leavers)
        self._changed.set()
        return self.coordinator.leave(key, leavers, trio.current_time())

    # Offsets

    def may_commit(self, key: KafkaGroupKey, sender: Sender) -> ErrorCode:
        if self._has_ended:
            return ErrorCode.NOT_COORDINATOR
        return self.coordinator.may_commit(key, sender, trio.current_time())

    async def is_current(self) -> bool:
        """Whether `offsets` had everything that was committed when this was asked."""
        return await self._file.is_current()

    async def commit(self, key: KafkaGroupKey, commits: Sequence[Commit]) -> ErrorCode:
        """They are in the file when this returns NONE."""
        if not self.offsets.has_room(key, commits):
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        return await self._write_counted(key, commits)

    async def forget(self, key: KafkaGroupKey) -> ErrorCode:
        """Delete a group, which has no members."""
        if self.coordinator.has_members(key):
            return ErrorCode.NON_EMPTY_GROUP
        count = len(self.offsets.of(key))
        if not count:
            return ErrorCode.GROUP_ID_NOT_FOUND
        # Made when its turn comes: many that ask for it at once hold nothing of it.
        is_written = await self._write_made(lambda: self.offsets.forgotten(key), count)
        return self._ended_as(is_written)

    async def forget_some(self, key: KafkaGroupKey, entries: Sequence[Forget]) -> ErrorCode:
        return await self._write_counted(key, entries)

    async def _write_counted(self, key: KafkaGroupKey, entries: Sequence[Entry]) -> ErrorCode:
        """LOAD_IN_PROGRESS: clients try again after a moment, with the same coordinator."""
        if not entries:
            return ErrorCode.NONE
        if not self.offsets.may_go(key, entries):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self._ended_as(
            await self._write_made(lambda: entries, len(entries), self.offsets.begin_way(key, entries))
        )

    def _ended_as(self, is_written: bool) -> ErrorCode:
        if is_written:
            return ErrorCode.NONE
        return ErrorCode.NOT_COORDINATOR if self._has_ended else ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def _write_made(
        self, make: Callable[[], Sequence[Entry]], count: int, end_way: Callable[[], None] = lambda: None
    ) -> bool:
        pending = PendingWrite(make, count, end_way)
        if self._has_ended:
            end_way()
            return False
        self._queue.append(pending)
        self._wanted.set()
        await pending.is_done.wait()
        return pending.is_written

    # Its tasks

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_time)
                nursery.start_soon(self._expire)
                await self._keep_writing()
        finally:
            self._file.close()

    def end(self) -> None:
        """Another node coordinates: whoever waits is told. What is on its way was written, or nobody knows; it is not
        answered as written."""
        self._has_ended = True
        self.coordinator.dismiss()
        for pending in [*self._on_the_way, *self._queue]:
            pending.end()
        self._on_the_way, self._queue = [], []

    async def _keep_time(self) -> None:
        while True:
            self._changed = trio.Event()
            with trio.move_on_at(self.coordinator.next_at):
                await self._changed.wait()
            self.coordinator.advance(trio.current_time())
            await trio.sleep(LOOK_SECONDS)
            self.coordinator.advance(trio.current_time())

    async def _keep_writing(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            while self._queue:
                batch = self._on_the_way = self._next_batch()
                entries = [each for pending in batch for each in pending.make()]
                try:
                    if entries:
                        await self._file.keep(entries, self.offsets.all)
                except CommitsLost:
                    pass  # it is no fault of a disk, and its owner ends this service
                except OSError as fault:
                    self._event("kafka.commits_failed", why=fault.strerror or str(fault))
                else:
                    self.offsets.take(entries)
                    self.commits += len(entries)
                    for pending in batch:
                        pending.is_written = True
                self._on_the_way = []
                for pending in batch:
                    pending.end()

    def _next_batch(self) -> list[PendingWrite]:
        count = size = 0
        for pending in self._queue:
            size += pending.count
            if count and size > ENTRIES_MAX:
                break
            count += 1
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    async def _expire(self) -> None:
        """Not at once: after a start members need time to come back. A write that is made when its turn comes: a
        commit that is on its way is newer than what is known now."""
        await trio.sleep(SESSION_SECONDS_MAX)
        while True:
            await self._write_made(self._out_of_date, ENTRIES_MAX)
            await trio.sleep(EXPIRY_SECONDS)

    def _out_of_date(self) -> list[Entry]:
        """What is too old is forgotten. That of a group with members is renewed, as some clients commit only what has
        changed: it is kept from when they left, as Kafka does."""
        now, used = self._now_ms(), self._used
        self._used = set()
        found: list[Entry] = []
        for key in self.offsets.groups:
            if key in used or self.coordinator.has_members(key):
                found += self.offsets.renewed(key, now - self._keep_ms // RENEWALS, now)
            else:
                found += self.offsets.forgotten(key, now - self._keep_ms)
            if len(found) >= ENTRIES_MAX:
                self._used = used
                break
        return found[:ENTRIES_MAX]


def member_id_of(client_id: str) -> str:
    return f"{client_id[:CLIENT_ID_CHARACTERS]}-{uuid.uuid4()}"
