"""When the log is written, and what waits for it: groups to the worker, acknowledgements out of it.

While one group is being written the next one gathers, so there is no timer but one: records of QoS 0, for which
nobody waits, may linger to make larger groups. Knows no packet but the bytes of acknowledgements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from router.commands import CommandQueue, Committed
from rumq.shards.write_path.worker_threads import Broken, Worker
from rumq.shards.write_path.write_admission import WriteAdmission

WRITE_BYTES = 1 << 18  # as much is written at once, whoever waits for it
MARK_SECONDS = 0.05  # after the last group, what is durable is written down
AWAITED_SECONDS = 10.0  # a partition that somebody waited for is one that is waited for, for so long
RETRY_SECONDS = 1.0  # an offline partition tries again
LOOK_SECONDS = (
    1.0  # how much is free on the disk: looked up so often, and when a quarter of the reserve may be gone
)


class PendingAck:
    """Bytes for one connection that leave together, once `parts` partitions are committed.

    barrier: no message that is delivered later may leave before them"""

    __slots__ = ("acks", "barrier", "link", "parts", "pubacks")

    def __init__(self, link: Any, acks: Any, pubacks: int, parts: int, barrier: bool) -> None:
        self.link, self.acks, self.pubacks, self.parts, self.barrier = link, acks, pubacks, parts, barrier
        link.barriers += barrier
        if link.holds is None:
            link.holds = deque()
        link.holds.append(self)


class GroupCommit:
    """The write side of every partition of a shard; each is a lane of the worker."""

    def __init__(
        self, partitions: list[Any], routed: int, own: list[int], worker: Worker, indexer: Worker,
        commands: CommandQueue, *, linger_seconds: float, event: Callable[..., None], monotonic: Callable[[], float],
        refusing: WriteAdmission, free_bytes: Callable[[], int],
    ) -> None:  # fmt: skip
        """routed: how many of the partitions, the first ones, the router reads; own: those that are written here

        of the others only what is on its way to their owners is here"""
        self._partitions = partitions
        self._routed = routed
        self._own = [(index, partitions[index]) for index in own]
        self._worker, self._indexer = worker, indexer
        self._monotonic = monotonic
        self._commands = commands
        self.linger = linger_seconds
        self._event = event
        self._holds: list[deque[tuple[int, PendingAck]]] = [deque() for _ in partitions]
        self._urgent = [False] * len(partitions)
        self._awaited = [-AWAITED_SECONDS] * len(partitions)  # when somebody last began to wait for one
        self._in_flight = [False] * len(partitions)
        self._due: list[float | None] = [None] * len(partitions)
        self._mark_due: list[float | None] = [None] * len(partitions)
        self._retry = [0.0] * len(partitions)
        self._refusing, self._free_bytes = refusing, free_bytes
        self._rolls: set[int] = set()
        self._given_up: set[int] = set()  # tried in vain since the stop began
        self._next_look = 0.0
        self._drain = False
        self._unlooked_bytes = 0  # written since the last look
        self._looking = False

    def hold(self, link: Any) -> None:
        """Keep the acknowledgements that the link's last packets ask for, until they are true."""
        wire = link.wire
        parts = wire.ack_parts
        if not wire.acks:
            return
        held = PendingAck(link, bytes(wire.acks), wire.pubacks, parts.bit_count(), link.raised)
        wire.acks.clear()
        wire.ack_parts = 0
        wire.pubacks = 0
        link.raised = False
        index = 0
        while parts:
            if parts & 1:
                partition = self._partitions[index]
                self._holds[index].append((partition.next_lsn, held))
                self._urgent[index] = True
                self._awaited[index] = self._monotonic()
                if partition.committed_lsn >= partition.next_lsn:
                    self._release(index)
            parts >>= 1
            index += 1
        self._send_ready(link)

    def wait(self, index: int, held: PendingAck) -> None:
        """Keep what is held until everything appended to a partition so far is committed."""
        self._holds[index].append((self._partitions[index].next_lsn, held))
        self._urgent[index] = True

    def is_awaited(self, index: int) -> bool:
        """Whether clients wait for what is appended to a partition, now or a moment ago."""
        return self._monotonic() - self._awaited[index] < AWAITED_SECONDS

    def roll(self, index: int) -> None:
        """Go on in a new segment of a partition, as soon as nothing of it is being written."""
        self._rolls.add(index)

    def urgent(self, index: int) -> None:
        """Somebody waits for what was appended to a partition."""
        self._urgent[index] = True

    def released(self, index: int) -> None:
        """Another shard has committed what was handed to it."""
        self._release(index)

    def start(self, now_us: int, monotonic: float, drain: bool) -> None:
        """Hand to the worker what is due. drain: everything is."""
        self._drain = drain
        reserve = self._refusing.free_bytes_min
        if not self._looking and (monotonic >= self._next_look or 0 < reserve < 4 * self._unlooked_bytes):
            self._next_look, self._unlooked_bytes, self._looking = monotonic + LOOK_SECONDS, 0, True
            self._indexer.submit(self._free_bytes, self._looked)
        for index, partition in self._own:
            if self._in_flight[index]:
                continue
            if index in self._rolls:
                self._rolls.discard(index)
                roll = partition.take_roll(now_us)
                if roll is not None:
                    self._submit(index, roll)
                    continue
            pending = partition.pending_bytes
            if not pending:
                # When nothing follows, the last group's mark is still to be written: readers of the files wait for it.
                mark = self._mark_due[index]
                if mark is not None and mark <= monotonic:
                    self._mark_due[index] = None
                    group = partition.take_mark(now_us)
                    if group is not None:
                        self._submit(index, group)
                continue
            due = self._due[index]
            if due is None:
                due = self._due[index] = monotonic + self.linger
            if self._retry[index] > monotonic:
                continue
            if drain or self._urgent[index] or pending >= WRITE_BYTES or due <= monotonic:
                self._take(index)

    def _looked(self, free_bytes: int, fault: BaseException | None) -> None:
        self._looking = False
        if isinstance(fault, OSError):
            self._refusing.unreachable(fault)
        elif fault is not None:
            raise fault
        else:
            self._refusing.free(free_bytes)

    def _take(self, index: int) -> None:
        group = self._partitions[index].take_group()
        if group is None:
            return
        self._urgent[index] = False
        self._submit(index, group)

    def _submit(self, index: int, group: Any) -> None:
        self._due[index] = None
        self._unlooked_bytes += group.bytes
        self._in_flight[index] = True
        self._worker.submit(group.run, lambda _, fault: self._written(index, group, fault), index)

    def _written(self, index: int, group: Any, fault: BaseException | None) -> None:
        partition = self._partitions[index]
        self._in_flight[index] = False
        if fault is not None:
            raise Broken(f"what became of a group of the log is unknown: {fault!r}") from fault
        failure = partition.complete(group)
        if partition.offline is not None:
            self._retry[index] = self._monotonic() + RETRY_SECONDS
            if self._drain:
                self._given_up.add(index)
            self._refusing.offline(
                index, group.offline.errno if group.offline else None, str(partition.offline)
            )
            return
        if failure is not None:
            self._event("log.failed", stream=partition.stream, partition=partition.number, why=str(failure))
        if group.chunks:
            self._refusing.online(index)
        if group.chunks:
            self._mark_due[index] = self._monotonic() + MARK_SECONDS
        while (job := partition.take_seal_job()) is not None:
            self._indexer.submit(job.run, self._indexed)
        if index < self._routed:
            self._commands.put(Committed(index, partition.committed_lsn))
        self._release(index)

    def _indexed(self, _: Any, fault: BaseException | None) -> None:
        if fault is not None:  # the segment itself is whole: its index is made again when it is asked for
            self._event("log.failed", why=f"a segment could not be indexed: {fault}")

    def _release(self, index: int) -> None:
        """Send the acknowledgements that have become true, each connection's in their order."""
        waiting = self._holds[index]
        committed = self._partitions[index].committed_lsn
        while waiting and waiting[0][0] <= committed:
            held = waiting.popleft()[1]
            held.parts -= 1
            if not held.parts:
                self._send_ready(held.link)

    @staticmethod
    def _send_ready(link: Any) -> None:
        holds = link.holds
        while holds and not holds[0].parts:
            ready = holds.popleft()
            if not link.closed:
                link.wire.unacknowledged -= ready.pubacks
                link.transport.write(ready.acks)
                if ready.barrier:
                    link.barriers -= 1
                    if not link.barriers and not link.raised:
                        link.released()

    @property
    def pending_bytes(self) -> int:
        waiting = 0
        for partition in self._partitions:
            waiting += partition.pending_bytes
        return waiting

    def next_deadline(self, monotonic: float) -> float | None:
        """When something is due that no worker is busy with, in monotonic seconds."""
        due = None
        for index, at in enumerate(self._due):
            if self._in_flight[index]:
                continue
            if at is None:
                at = self._mark_due[index]
            if at is None:
                continue
            at = max(at, self._retry[index])
            if due is None or at < due:
                due = at
        return due

    def idle(self) -> bool:
        """Whether all is written that can be: for a partition whose disk refuses it a stop does not wait."""
        return not any(self._in_flight) and not any(
            p.pending_bytes and index not in self._given_up and not self._refusing.is_offline_elsewhere(index)
            for index, p in enumerate(self._partitions)
        )

    def unwritten(self) -> list[tuple[Any, int]]:
        """(partition, bytes) of what its disk would not take; nobody was promised it."""
        return [(p, p.pending_bytes) for _, p in self._own if p.pending_bytes]
