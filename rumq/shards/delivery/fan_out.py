"""Carry out deliveries: encode a chunk once per group and hand its bytes to the delivery windows of the readers.

Retained messages likewise. What a client cannot take returns to the router as a command. Knows no file."""
# compiled: hot

from __future__ import annotations

from commitlog.chunk import Chunk
from router import commands as c
from router.effects import CatchUpPaused, ChunkRows, Deliver, DeliverRetained, Scatter
from router.readers.reader import Reader
from rumq.loop.ports import CommandQueue, FaultGuard
from rumq.loop.queues import ReadyLinks
from rumq.loop.scheduler import ShardClock
from rumq.mqtt.kernels import fanout
from rumq.mqtt.kernels.as_stored import pick
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.histogram import Histogram
from rumq.session.state.session import Session
from rumq.shards.bus.record_forwarder import ShardSink
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.delivery import traced_deliveries
from rumq.shards.delivery.fan_out_cache import ANY, FanOutCache, GroupBytes
from rumq.shards.delivery.retained_delivery import RetainedDelivery
from rumq.shards.delivery.undelivered_rows import UndeliveredRows


class FanOut:
    """ages: of records when readers at the end of the log are given them, from their append on"""

    def __init__(
        self, clock: ShardClock, commands: CommandQueue, ready: ReadyLinks, guard: FaultGuard, blobs: FanOutCache,
        sessions: dict[str, Session], drop_counters: DropCounters, retained: RetainedDelivery,
    ) -> None:  # fmt: skip
        self._clock, self._commands, self._ready, self._guard = clock, commands, ready, guard
        self._blobs, self._feeds, self._sessions, self._retained = blobs, blobs.feeds, sessions, retained
        self._left_out = UndeliveredRows(drop_counters, blobs.feeds)
        self.ages = Histogram()

    def more(self, effect: CatchUpPaused) -> None:
        """Go on with a reader that is behind as soon as its piece has left, others in between."""
        reader = effect.reader
        share = reader.share
        readers = [reader] if share is None else share.readers()
        for each in readers:
            flow = each.sink
            if isinstance(flow, DeliveryWindow):
                if flow.waits or each.refused or (effect.if_taken and flow.window_full):
                    continue  # it goes on by itself: once the journal is written, or there is room or credit
                if flow.is_spent_for(each):
                    continue
            if flow is not None and flow.is_open:
                if flow.outbox.waits():
                    flow.outbox.refused = True
                else:
                    self._ready.add_next_turn(flow.outbox)

    def deliver(self, effect: Deliver) -> None:
        group = effect.group
        if group.is_shard:
            self._forward(effect)
            return
        if effect.denied is not None and self._is_withheld(effect):
            self._withhold(effect)
            return
        shaped = self._blobs.shaped(group)
        live = group.live[effect.partition]
        if effect.readers and live.has(effect.readers[0]):
            self._observe(effect.chunk, effect.stop - effect.first)
        if shaped.alias_max:
            effect.readers = self._after_aliases(effect, shaped)  # full topics, which are never wrong
            if not effect.readers:
                return
        publisher = 0
        if shaped.key is not None:
            publisher = self._publisher(self._sessions.get(shaped.key), effect.partition)
        numbered_max = ANY
        first = effect.readers[0] if effect.readers else None
        if first is not None and first.share is not None and len(effect.readers) == 1:
            # A group's part is its member's alone, and comes again as far as it does not fit in the window: of a deep
            # queue, thousands of messages for the few that were acknowledged.
            sink = first.sink
            if isinstance(sink, DeliveryWindow) and sink.is_open:
                numbered_max = sink.credit()
        blob = self._blobs.blob_of(effect, shaped.v5, shaped.packet_max, publisher, self._clock.now_us, numbered_max)
        counts = effect.denied is not None or blob.expired or blob.too_large
        traced = None if group.committed_only else effect.chunk.traces  # a replay has a trace of its own
        for reader in effect.readers:
            sink = reader.sink
            if isinstance(sink, DeliveryWindow):
                flow = sink
                try:
                    if traced is None:
                        reached = flow.offer(effect, reader, blob)
                    else:
                        reached = traced_deliveries.offer(effect, reader, flow, blob)
                    if counts:
                        self._left_out.count(effect, reader, blob, effect.first, reached)
                except Exception:
                    self._guard.crashed(flow.outbox)
                    self._gone(effect, reader)
            else:
                self._gone(effect, reader)

    def _forward(self, effect: Deliver) -> None:
        """To another shard."""
        for reader in effect.readers:
            if isinstance(reader.sink, ShardSink):
                reader.sink.forward(effect)

    def _is_withheld(self, effect: Deliver) -> bool:
        """Whether nothing of it may be received."""
        return effect.wanted is not None and not any(effect.wanted)

    def _after_aliases(self, effect: Deliver, shaped: GroupBytes) -> list[Reader]:
        """Deliver with topic aliases; the readers that are left, which get it once more."""
        first_lsn = effect.chunk.base_lsn + effect.first
        resent = [
            r
            for r in effect.readers
            if r.redelivered_below is not None and first_lsn < r.redelivered_below[effect.partition]
        ]
        for reader in effect.readers:
            if reader not in resent:
                self._deliver_with_aliases(effect, reader, shaped.packet_max, shaped.alias_max)
        return resent

    def _observe(self, chunk: Chunk, rows: int) -> None:
        """One observation a batch and group, which stands for all of its records."""
        self.ages.observe((self._clock.now_us - chunk.base_ts) * 1e-6, rows)

    def scatter(self, effect: Scatter) -> None:
        """Deliver to many groups: as it is stored what can go out so, the rest encoded for its group."""
        chunk = effect.chunk
        self._observe(chunk, effect.stop - effect.first)
        rows, frames, base_lsn = chunk.rows, chunk.frames, chunk.base_lsn
        for part in effect.parts:
            group, readers, form_number, picked, first, stop = part
            version, packet_max, alias_max, _ = group.shape[0]  # type: ignore[index]
            blob = None
            if not alias_max:
                v5 = version == 5
                form = self._blobs.forms(group, effect.partition, v5, chunk)[form_number]
                if form.plain():
                    blob = pick(rows, frames, picked, first, stop, base_lsn, form, v5, packet_max)
            if blob is None:
                self.deliver(effect.as_delivery(part))
                continue
            for reader in readers:
                sink = reader.sink
                if isinstance(sink, DeliveryWindow):
                    flow = sink
                    try:
                        if chunk.traces is None:
                            flow.offer(effect, reader, blob)
                        else:
                            traced_deliveries.offer(effect, reader, flow, blob)
                    except Exception:
                        self._guard.crashed(flow.outbox)
                        self._gone(effect, reader)
                else:
                    self._gone(effect, reader)

    def _withhold(self, effect: Deliver) -> None:
        """Nothing of it may be received: it is counted where the readers have come to it."""
        for reader in effect.readers:
            flow = reader.sink
            if not isinstance(flow, DeliveryWindow):
                self._gone(effect, reader)
            elif flow.takes(effect, reader):
                self._left_out.count_denied(effect, reader, effect.first, effect.stop)

    def _gone(self, effect: ChunkRows, reader: Reader) -> None:
        """The client went in the step that has something for it: its session, or another member, still wants it."""
        lsn = effect.chunk.base_lsn + effect.first
        self._commands.put(c.Blocked(reader, effect.partition, lsn))

    def _publisher(self, session: Session | None, index: int) -> int:
        """The number of a client as a publisher in a partition's rows; 0: it has published nothing there."""
        if session is None:
            return 0
        partition = self._feeds[index].partition
        # Also what it published before it had this session (MQTT-3.8.3-3 speaks of the client id).
        number = session.publishers[index] if session.publishers is not None else 0
        number = number or partition.known_publisher(session.client_id)
        return partition.outgoing.theirs[number] if isinstance(partition, RemotePartition) else number

    def _deliver_with_aliases(self, effect: Deliver, reader: Reader, packet_max: int, alias_max: int) -> None:
        """One client's own bytes: an alias, once told, must have arrived, so no more is built than it takes."""
        flow = reader.sink
        if not isinstance(flow, DeliveryWindow) or not flow.is_open:
            self._gone(effect, reader)
            return
        if reader.refused >> effect.partition & 1 and reader.share is None:
            return  # as in `DeliveryWindow.takes`
        if flow.aliases is None:
            flow.aliases = {}
        chunk, first = effect.chunk, effect.first
        forms = self._blobs.forms(effect.group, effect.partition, True, chunk)
        if effect.wanted is None:
            forms = [forms[effect.form]]
        numbered = any(f.qos for f in forms)
        key = effect.group.wants.shape[1]  # type: ignore[index]
        publisher = self._publisher(self._sessions.get(key), effect.partition)
        while first < effect.stop:
            rows = flow.rows_max(effect, reader, first, numbered=numbered)
            if not rows:
                return
            blob, after = fanout.build(
                chunk.rows, chunk.frames, first, first + rows, chunk.base_lsn, chunk.base_ts,
                forms, effect.wanted, effect.places, True, packet_max, publisher, self._clock.now_us,
                flow.aliases, alias_max, 1 << 16, effect.partition,
            )  # fmt: skip
            if effect.denied is not None or blob.expired or blob.too_large:
                self._left_out.count(effect, reader, blob, first, after)
            began = None if chunk.traces is None else traced_deliveries.Begun(chunk.traces, flow)
            flow.send_own(reader, effect.partition, blob)
            if began is not None:
                began.tell(chunk, reader, blob, first, after)
            first = after

    def deliver_retained(self, effect: DeliverRetained) -> None:
        flow = effect.reader.sink
        if isinstance(flow, DeliveryWindow):
            behind = bool(flow.retained)
            more = flow.offer_retained(self._retained.pieces(effect))
            if more or (behind and not flow.retained):
                self._ready.add_next_turn(flow.outbox)
