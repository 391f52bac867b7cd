"""Deliveries of traced messages: a span for each subscriber, and new traces, linked to the old one, for replays."""

from __future__ import annotations

from commitlog.chunk import FLAG_V5, Chunk
from router.effects import ChunkRows, Deliver
from router.readers.reader import Reader
from rumq.mqtt.kernels.fanout import Blob
from rumq.mqtt.kernels.trace_context import contexts, patched
from rumq.mqtt.kernels.window import Window
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.ports.transport import Transport
from rumq.session.state.session_owner import client_id_of
from rumq.tracing.context import TraceContext, parsed
from rumq.tracing.spans import Value
from rumq.tracing.trace import ChunkTraces, MessageTrace
from rumq.tracing.tracer import Tracer, topic_of


def offer(effect: ChunkRows, reader: Reader, flow: DeliveryWindow, blob: Blob) -> int:
    """`DeliveryWindow.offer` of a chunk with traced messages."""
    began = Begun(effect.chunk.traces, flow)
    reached = flow.offer(effect, reader, blob)
    began.tell(effect.chunk, reader, blob, effect.first, min(effect.stop, reached))
    return reached


class Begun:
    """The hand-over of a chunk's messages to one reader, from before it."""

    def __init__(self, traced: ChunkTraces, flow: DeliveryWindow) -> None:
        self._traced, self._flow = traced, flow
        self._begun_us = traced.tracer.time_us()
        self._first = flow.window.next if flow.window is not None else 0

    def tell(self, chunk: Chunk, reader: Reader, blob: Blob, first: int, stop: int) -> None:
        """The reader has rows first..stop, as far as they are in the blob."""
        for trace in self._traced.within(chunk.base_lsn + first, chunk.base_lsn + stop):
            at = blob.first_at_or_after(trace.lsn)
            if at >= blob.count or blob.lsn(at) != trace.lsn:
                continue  # not wanted, expired, too large
            qos = blob.data[blob.start(at)] >> 1 & 3
            told = delivery_attributes(reader, self._flow, qos)
            delivery = self._traced.tracer.delivered(trace, self._begun_us, told)
            if delivery is not None and qos:
                self._wait(trace, delivery)

    def _wait(self, trace: MessageTrace, delivery: bytes) -> None:
        """For the subscriber's acknowledgement."""
        window: Window | None = self._flow.window
        if window is None:
            return
        first = max(self._first, window.head)
        lsns = memoryview(window.slots(first, window.next)[1]).cast("Q")
        for at, lsn in enumerate(lsns):
            if lsn == trace.lsn:
                self._traced.tracer.unsettled(trace, delivery, window, first + at)
                return


def delivery_attributes(reader: Reader, flow: DeliveryWindow, qos: int) -> dict[str, Value]:
    """Attributes of a delivery. Of a shared group's reader the key names the group."""
    if reader.share is None:
        return {"messaging.client.id": client_id_of(reader.key), "rumq.qos": qos}
    outbox = flow.outbox
    client_id = outbox.link.client_id if isinstance(outbox, Transport) else None
    return {
        "messaging.client.id": client_id or "", "messaging.consumer.group.name": reader.share.key, "rumq.qos": qos,
    }  # fmt: skip


def replayed(tracer: Tracer, effect: Deliver, blob: Blob) -> None:
    """Begin a trace for each sampled record of a replay, linked to that of its publish, as far as the rate allows.

    The readers get its context: a record of last week is no part of a trace of last week any more."""
    chunk, sampler = effect.chunk, tracer.sampler
    if sampler is None or not chunk.flags & FLAG_V5 or not blob.count:
        return
    sampler.carried = []
    sampler.look(chunk.rows, chunk.frames, chunk.count)
    found, sampler.carried = sampler.carried, []
    for row in found:
        lsn = chunk.base_lsn + row
        at = blob.first_at_or_after(lsn)
        if not effect.first <= row < effect.stop or at >= blob.count or blob.lsn(at) != lsn:
            continue
        frame = bytes(blob.part(at, at + 1))
        qos = frame[0] >> 1 & 3
        stored = parsed(contexts(frame, qos)[0] or b"")
        if stored is None:
            continue
        made = TraceContext(tracer.new_id(16), tracer.new_id(8))
        data = patched(blob.data, blob.start(at), qos, made.traceparent)
        if data is None:
            continue
        blob.data = data
        sampler.budget -= 1
        tracer.traces += 1
        told: dict[str, Value] = {
            "messaging.operation.name": "replay", "messaging.destination.name": topic_of(frame), "rumq.lsn": lsn,
            "messaging.client.id": client_id_of(effect.readers[0].key), "rumq.readers": len(effect.readers),
        }  # fmt: skip
        trace = MessageTrace(tracer, made, topic_of(frame), qos, row, lsn)
        trace.replayed(stored, told)
