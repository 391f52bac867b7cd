"""Redelivery: messages in flight when a client disconnected are read from the log and sent again. MQTT 5.0, 4.4.

The client's readers wait for reads from disk. Knows no socket."""

from __future__ import annotations

from functools import partial

from commitlog.chunk import Chunk, Gap
from commitlog.row_layout import ROW_WORDS
from router.commands import Attach
from router.matching.feed import Feed
from router.readers.reader import Reader
from router.readers.slots import RETAINED_CODE, partition_of, reader_of
from router.readers.subscription import DeliveryOptions
from rumq.loop.ports import ChunkReader, Clock, CommandQueue, Timers
from rumq.mqtt.kernels import fanout
from rumq.mqtt.kernels.publish_properties import RAISED
from rumq.session.connection.broker_port import Redelivering
from rumq.session.protocol import authorization
from rumq.session.state.drop_counters import OTHER_TOPICS, DropCounters, Why
from rumq.shards.delivery.fan_out_cache import located, wire_form

WAITS_PUBACK, WAITS_PUBREC = UNANSWERED = (1, 2)  # states of the in-flight window


class Redelivery:
    def __init__(
        self, clock: Clock, timers: Timers, commands: CommandQueue, feeds: list[Feed], reader: ChunkReader,
        drop_counters: DropCounters,
    ) -> None:  # fmt: skip
        self._clock, self._timers, self._commands = clock, timers, commands
        self._feeds, self._reader, self._drop_counters = feeds, reader, drop_counters
        self._reading: set[Redelivering] = set()

    def go_on(self, deliveries: Redelivering) -> None:
        """Send what the client's receive maximum allows, in order; after the last one attach its readers."""
        unsent, session, flow = deliveries.unsent, deliveries.session, deliveries.flow
        if deliveries in self._reading or not unsent or deliveries.client.closed:
            return
        window = session.window
        assert window is not None
        # The client may have answered, on this connection, any of those that are still to be sent again.
        outstanding = window.in_flight - window.unanswered_from(unsent[0][0])
        while unsent:
            packet_id, code, lsn = unsent[0]
            if window.state_of(packet_id) not in UNANSWERED:
                unsent.popleft()  # it came on the last connection
                continue
            if outstanding >= window.limit:
                break
            feed = self._feeds[partition_of(code)]
            chunk = None
            if lsn >= feed.partition.first_lsn:
                chunk = feed.read_chunk(lsn)
                if chunk is None:
                    self._read(deliveries, partition_of(code), lsn)
                    return
            if not self._is_routed(deliveries, code, chunk, lsn):
                self._timers.next_turn(partial(self.go_on, deliveries))
                return
            unsent.popleft()
            if chunk is None:
                self._give_up(deliveries, packet_id, "retention")
            elif not isinstance(chunk, Chunk):
                self._give_up(deliveries, packet_id, "damaged")
            else:
                outstanding += self._send(deliveries, packet_id, code, chunk, lsn - chunk.base_lsn)
        if not unsent:
            self._commands.put(Attach(session.subscriber, flow))

    def _is_routed(self, deliveries: Redelivering, code: int, chunk: Chunk | Gap | None, lsn: int) -> bool:
        """Whether it is known who wants the message: that may take more than a turn to find out."""
        if not isinstance(chunk, Chunk):
            return True
        row = lsn - chunk.base_lsn
        reader = self._reader_of(deliveries, reader_of(code))
        if reader is None or reader.share is not None:
            return True
        return bool(self._feeds[partition_of(code)].routes.routes_of(chunk.rows, row, row + 1)[2] > row)

    def _read(self, deliveries: Redelivering, index: int, lsn: int) -> None:
        feed = self._feeds[index]
        self._reading.add(deliveries)

        def done(chunks: list[Chunk | Gap] | None, fault: BaseException | None) -> None:
            self._reading.discard(deliveries)
            feed.cache_cold(chunks or [])
            found = chunks is not None and bool(chunks) and chunks[0].base_lsn <= lsn < chunks[0].next_lsn
            if not found and deliveries.unsent and not deliveries.client.closed:
                self._give_up(deliveries, deliveries.unsent.popleft()[0], "damaged")
            self.go_on(deliveries)

        self._reader.read(index, lsn, done)

    def _send(self, deliveries: Redelivering, packet_id: int, code: int, chunk: Chunk, row: int) -> bool:
        """Whether it was sent; else it is given up."""
        assert deliveries.flow.window is not None
        names = self._feeds[partition_of(code)].partition.topic_names
        topic = names[memoryview(chunk.rows).cast("B").cast("I")[row * ROW_WORDS]].decode()
        if not authorization.may_receive_again(deliveries.client, topic, reader_of(code)):
            self._give_up(deliveries, packet_id, "no_permission", topic)
            return False
        v5 = deliveries.client.version == 5
        state = deliveries.flow.window.state_of(packet_id)
        # One that was sent with QoS 2 stays one, whoever asks now: its packet id is in a handshake of QoS 2.
        raises_qos = state == WAITS_PUBREC and deliveries.session.raises_qos
        raised = None if state != WAITS_PUBREC else RAISED if raises_qos else b""
        form = self._form(deliveries, code, chunk, row, state, raises_qos=raises_qos)
        named = chunk.publishers
        publishers = self._feeds[partition_of(code)].partition.publisher_names if named is None else named
        is_retained = bool(code & RETAINED_CODE)
        place = located(self._feeds[partition_of(code)]) if form.tells_place and not is_retained else b""
        blob, _ = fanout.build(
            chunk.rows, chunk.frames, row, row + 1, chunk.base_lsn, chunk.base_ts,
            [wire_form(form, v5, place, publishers, always_retain=is_retained, raised=raised)], None, None,
            v5, deliveries.client.packet_bytes_max, 0, self._clock.now_us, None, 0, 1 << 40,
        )  # fmt: skip
        if blob.count == 0:
            self._give_up(deliveries, packet_id, "expired" if blob.expired else "over_limit", topic)
            return False
        deliveries.client.transport.write(fanout.again(blob, packet_id))
        return True

    def _form(
        self, deliveries: Redelivering, code: int, chunk: Chunk, row: int, qos: int, *, raises_qos: bool
    ) -> DeliveryOptions:
        """The form in which the message went out, as far as its subscription still is there (MQTT-3.10.4-5).

        raises_qos: what the subscription was granted says which QoS the message has, not how it was sent"""
        feed = self._feeds[partition_of(code)]
        reader = self._reader_of(deliveries, reader_of(code))
        if reader is None:
            return DeliveryOptions(qos, False, False, ())
        if reader.share is not None:
            form = reader.group.forms[0]
        else:
            numbers, _, _ = feed.routes.routes_of(chunk.rows, row, row + 1)
            wanted, _ = feed.routes.wanted_by(reader.group, numbers)
            if not wanted[0]:
                return DeliveryOptions(qos, False, False, ())
            form = reader.group.forms[wanted[0] - 1]
        return DeliveryOptions(
            max(1, form.qos) if raises_qos else qos, form.retain_as_published, False, form.identifiers,
            form.tells_publisher, form.tells_place,
        )  # fmt: skip

    @staticmethod
    def _reader_of(deliveries: Redelivering, number: int) -> Reader | None:
        subscriber = deliveries.session.subscriber
        shared = [share.members[subscriber].reader for share in subscriber.shares.values()]
        return next((r for r in [*subscriber.readers(), *shared] if r.number == number), None)

    def _give_up(self, deliveries: Redelivering, packet_id: int, why: Why, topic: str = OTHER_TOPICS) -> None:
        """A message that was sent and never acknowledged cannot be sent again: it does not count as delivered.

        topic: unknown where the log does not have the record any more"""
        window = deliveries.flow.window
        assert window is not None
        if window.state_of(packet_id) == WAITS_PUBREC and deliveries.session.raises_qos:
            # A bridge's target may have it, and would take a later message with the same id for it.
            deliveries.release(packet_id)
        else:
            window.refuse(packet_id)
        if deliveries.session.delivered:  # of this run of the broker
            deliveries.session.delivered -= 1
        self._drop_counters.count(why, deliveries.session.key, topic)
