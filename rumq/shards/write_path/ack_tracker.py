"""Acknowledgements that wait for the log: sent once what they promise is committed, each client's in order.

A promise names its parts as bits: bit p is partition p, the bit behind the last partition is the session journal.
What a client promises in one step leaves together. MQTT 5.0, 4.3 and 4.6; docs/durability.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from commitlog.partition_types import AckSource
from rumq.session.connection.pending_acks import PendingAcks
from rumq.shards.turn.ports import Clock

AWAITED_SECONDS = (
    10.0  # after the last acknowledgement that waited for a partition, it still counts as awaited
)


class PendingAck:
    """Bytes for one connection that leave together, once `parts` partitions are committed.

    barrier: no message that is delivered later may leave before them"""

    __slots__ = ("acks", "barrier", "client", "parts", "pubacks")

    def __init__(self, client: PendingAcks, acks: object, pubacks: int, parts: int, barrier: bool) -> None:
        self.client, self.acks, self.pubacks, self.parts, self.barrier = client, acks, pubacks, parts, barrier
        client.barriers += barrier
        if client.holds is None:
            client.holds = deque()
        client.holds.append(self)


class AckTracker:
    """urgent: by partition, whether somebody waits for what was appended since its last group"""

    def __init__(
        self, sources: Sequence[AckSource], flush_journal: Callable[[int], None], clock: Clock
    ) -> None:
        """sources: of the partitions by index, and of the session journal

        flush_journal: appends this turn's entries, at a time in µs"""
        self._sources = list(sources)
        self._flush_journal, self._clock = flush_journal, clock
        self._journal_index = len(sources) - 1
        self._waiting: list[deque[tuple[int, PendingAck]]] = [deque() for _ in self._sources]
        self._awaited = [-AWAITED_SECONDS] * len(self._sources)  # when an acknowledgement last began to wait
        self._promised: list[PendingAcks] = []
        self._messages: list[PendingAck] = []
        self.urgent = [False] * len(self._sources)

    def promise(self, client: PendingAcks, parts: int = 0) -> None:
        """Send the client's `wire.acks`, as they are when this step ends, once `parts` are committed up to there.

        parts: bits, in addition to those in `wire.ack_parts`"""
        client.wire.ack_parts |= parts
        self._promised.append(client)

    def promise_messages(self, client: PendingAcks, data: object) -> None:
        """Send messages once the journal has the entries about them; no later message may overtake them."""
        self._messages.append(PendingAck(client, data, 0, 1, True))

    def is_awaited(self, index: int) -> bool:
        """Whether acknowledgements wait for a partition, or did a moment ago."""
        return self._clock.monotonic - self._awaited[index] < AWAITED_SECONDS

    def end_step(self) -> bool:
        """Have this step's promises wait for what has been appended until now; whether there were any."""
        if not self._promised and not self._messages:
            return False
        self._flush_journal(self._clock.now_us)
        messages, self._messages = self._messages, []
        for message in messages:
            self._waiting[self._journal_index].append((self._sources[self._journal_index].next_lsn, message))
            self.urgent[self._journal_index] = True
        promised, self._promised = self._promised, []
        for client in promised:
            if not client.closed and client.wire.acks:
                self._wait(client)
        return True

    def _wait(self, client: PendingAcks) -> None:
        wire = client.wire
        parts = wire.ack_parts
        pending = PendingAck(client, bytes(wire.acks), wire.pubacks, parts.bit_count(), client.raised)
        wire.acks.clear()
        wire.ack_parts = 0
        wire.pubacks = 0
        client.raised = False
        index = 0
        while parts:
            if parts & 1:
                source = self._sources[index]
                self._waiting[index].append((source.next_lsn, pending))
                self.urgent[index] = True
                self._awaited[index] = self._clock.monotonic
                if source.committed_lsn >= source.next_lsn:
                    self.release(index)
            parts >>= 1
            index += 1
        send_ready(client)

    def release(self, index: int) -> None:
        """A partition has committed more: send what has become true."""
        waiting = self._waiting[index]
        committed = self._sources[index].committed_lsn
        while waiting and waiting[0][0] <= committed:
            pending = waiting.popleft()[1]
            pending.parts -= 1
            if not pending.parts:
                send_ready(pending.client)


def send_ready(client: PendingAcks) -> None:
    """Send a client's acknowledgements up to the first one that still waits."""
    pending = client.holds
    while pending and not pending[0].parts:
        ready = pending.popleft()
        if not client.closed:
            client.wire.unacknowledged -= ready.pubacks
            client.transport.write(ready.acks)
            if ready.barrier:
                client.barriers -= 1
                if not client.barriers and not client.raised:
                    client.released()
