"""When the log is written, and what waits for it: groups to the worker, acknowledgements out of it.

While one group is being written the next one gathers, so there is no timer but one: records of QoS 0, for which
nobody waits, may linger to make larger groups. Knows no packet but the bytes of acknowledgements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from router.commands import Committed
from rumq.shards.worker import Worker

WRITE_BYTES = 1 << 18  # as much is written at once, whoever waits for it


class Hold:
    """Acknowledgements of one connection that leave together, once `parts` partitions are committed."""

    __slots__ = ("acks", "link", "parts", "pubacks")

    def __init__(self, link: Any, acks: bytes, pubacks: int, parts: int) -> None:
        self.link, self.acks, self.pubacks, self.parts = link, acks, pubacks, parts


class Writing:
    """The write side of every partition of a shard."""

    def __init__(
        self, partitions: list[Any], worker: Worker, commands: list[Any], *, linger_seconds: float,
        pending_bytes_max: int, event: Callable[..., None],
    ) -> None:  # fmt: skip
        self._partitions = partitions
        self._worker = worker
        self._commands = commands
        self._linger = linger_seconds
        self._pending_bytes_max = pending_bytes_max
        self._event = event
        self._holds: list[deque[tuple[int, Hold]]] = [deque() for _ in partitions]
        self._urgent = [False] * len(partitions)
        self._in_flight = [False] * len(partitions)
        self._due: list[float | None] = [None] * len(partitions)

    def hold(self, link: Any) -> None:
        """Keep the acknowledgements that the link's last packets ask for, until they are true."""
        wire = link.wire
        parts = wire.ack_parts
        held = Hold(link, bytes(wire.acks), wire.pubacks, parts.bit_count())
        wire.acks.clear()
        wire.ack_parts = 0
        wire.pubacks = 0
        link_holds = link.holds
        if link_holds is None:
            link_holds = link.holds = deque()
        link_holds.append(held)
        index = 0
        while parts:
            if parts & 1:
                partition = self._partitions[index]
                self._holds[index].append((partition.next_lsn, held))
                self._urgent[index] = True
                if partition.committed_lsn >= partition.next_lsn:
                    self._release(index)
            parts >>= 1
            index += 1
        self._send_ready(link)

    def start(self, monotonic: float) -> None:
        """Hand to the worker what is due."""
        for index, partition in enumerate(self._partitions):
            if self._in_flight[index]:
                continue
            pending = partition.pending_bytes
            if not pending:
                continue
            due = self._due[index]
            if due is None:
                due = self._due[index] = monotonic + self._linger
            if self._urgent[index] or pending >= WRITE_BYTES or due <= monotonic:
                self._take(index)

    def _take(self, index: int) -> None:
        group = self._partitions[index].take_group()
        if group is None:
            return
        self._urgent[index] = False
        self._due[index] = None
        self._in_flight[index] = True
        self._worker.submit(group.run, lambda _, fault: self._written(index, group, fault))

    def _written(self, index: int, group: Any, fault: BaseException | None) -> None:
        partition = self._partitions[index]
        self._in_flight[index] = False
        if fault is not None:
            raise fault
        failure = partition.complete(group)
        if failure is not None:
            self._event("log.failed", stream=partition.stream, partition=partition.number, fault=str(failure))
        self._commands.append(Committed(index, partition.committed_lsn))
        self._release(index)

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

    @property
    def behind(self) -> bool:
        """Whether so much waits to be written that publishers must wait too."""
        return sum(p.pending_bytes for p in self._partitions) > self._pending_bytes_max

    def next_deadline(self) -> float | None:
        """When lingering records are due, in monotonic seconds."""
        due = [d for d, busy in zip(self._due, self._in_flight, strict=True) if d is not None and not busy]
        return min(due) if due else None

    def idle(self) -> bool:
        return not any(self._in_flight) and not any(p.pending_bytes for p in self._partitions)
