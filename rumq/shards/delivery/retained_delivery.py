"""Retained messages on their way to clients: found and built in pieces, a bounded amount of it in each turn.

A filter may match a million of them: a subscriber gets them as fast as its socket and its delivery window allow, a
bounded number per turn for all. Knows no socket."""
# compiled: warm

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from commitlog.log.partition_types import PartitionReader
from commitlog.row_layout import ROW_EXPIRY, ROW_FLAGS_AT
from router.effects import DeliverRetained
from router.kernels import routes as kernel
from router.matching.retained import RetainedRecord, RetainedView
from router.readers.slots import PARTITION_BITS
from router.readers.subscription import DeliveryOptions
from rumq.mqtt.kernels import fanout
from rumq.mqtt.kernels.fanout import Blob
from rumq.mqtt.kernels.publish_properties import RAISED
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.session import Shape
from rumq.shards.delivery.fan_out_cache import wire_form

LOOKS_A_TURN = 512  # names that are looked at in a turn, for all clients together
BUILDS_A_TURN = 64  # messages that are encoded in a turn, for all clients together
LSNS_A_BLOB = 1 << 32


class RetainedDelivery:
    """What all the searches of a shard may do in one turn."""

    def __init__(
        self, view: RetainedView, drop_counters: DropCounters, partitions: Sequence[PartitionReader] = ()
    ) -> None:
        """partitions: by index, for the names of their publishers"""
        self._view, self._drop_counters, self._partitions = view, drop_counters, partitions
        self.now_us = 0
        self.looks_left = self.builds_left = 0

    def begin_turn(self, now_us: int) -> None:
        self.now_us = now_us
        self.looks_left, self.builds_left = LOOKS_A_TURN, BUILDS_A_TURN

    def pieces(self, effect: DeliverRetained) -> Pieces:
        shape: Shape = effect.reader.group.wants.shape[0]  # type: ignore[index]
        return Pieces(self, effect, shape)

    def form(self, asked: DeliveryOptions, shape: Shape, partition: int) -> fanout.Form:
        publishers = self._partitions[partition].publisher_names if asked.tells_publisher else {}
        raised = RAISED if shape.raises_qos else None
        return wire_form(asked, shape.version == 5, b"", publishers, always_retain=True, raised=raised)

    def build(self, messages: list[RetainedRecord], form: fanout.Form, shape: Shape, key: str) -> Blob:
        """The packets of messages of one partition. Those that have expired leave the view."""
        rows = kernel.renumber(None, [(message.row, len(message.frame)) for message in messages])
        frames = b"".join([message.frame for message in messages])
        built, _ = fanout.build(
            rows, frames, 0, len(messages), 0, messages[0].base_ts, [form], None, None,
            shape.version == 5, shape.packet_max, 0, self.now_us, None, 0, 1 << 40,
        )  # fmt: skip
        for row in built.expired:
            self._view.drop(messages[row])
        for row in built.too_large:
            self._drop_counters.count("over_limit", key, messages[row].topic)
        # The kernel takes rows of one chunk; these stand all over the log.
        base_lsn = min(message.lsn for message in messages)
        places = array("I", [messages[built.rows[at]].lsn - base_lsn for at in range(built.count)])
        return Blob(built.data, built.count, built.qos_count, built.starts, memoryview(places), base_lsn, True)


class Pieces:
    """The retained messages that one subscription brings one client. over: there are no more"""

    def __init__(self, handing: RetainedDelivery, effect: DeliverRetained, shape: Shape) -> None:
        self._handing, self._asked, self._shape = handing, effect.form, shape
        self._forms: dict[int, fanout.Form] = {}  # by partition
        self._search = effect.search
        self._key, self._number = effect.reader.key, effect.reader.number
        # (partition, encoded bytes, the records in them), not delivered yet
        self._ready: deque[tuple[int, Blob, list[RetainedRecord]]] = deque()
        self._first = 0
        self._permit = self._search.permit()  # the permit with which `_ready` was built
        self.over = False

    def piece(self) -> tuple[Any, int, int] | None:
        """(blob, its first frame not yet taken, code of reader and partition); None: no more in this turn."""
        handing, search = self._handing, self._search
        if search.permit() is not self._permit:
            self._build_again()
        while not self._ready:
            if search.over:
                self.over = True
                return None
            if handing.looks_left <= 0 or handing.builds_left <= 0:
                return None
            before = search.looked
            found = search.next_messages()
            handing.looks_left -= search.looked - before
            handing.builds_left -= len(found)
            found.sort(key=batch_key)
            for _, some in groupby(found, key=batch_key):
                self._build(list(some))
        partition, blob, _ = self._ready[0]
        return blob, self._first, self._number << PARTITION_BITS | partition

    def _build(self, messages: list[RetainedRecord]) -> None:
        partition = messages[0].partition
        form = self._forms.get(partition)
        if form is None:
            form = self._forms[partition] = self._handing.form(self._asked, self._shape, partition)
        blob = self._handing.build(messages, form, self._shape, self._key)
        if blob.count:
            self._ready.append((partition, blob, messages))

    def _build_again(self) -> None:
        """Rules have changed: of what waits for room or credit, only what may be received now goes out."""
        permit = self._permit = self._search.permit()
        ready, self._ready = self._ready, deque()
        first, self._first = self._first, 0
        for _, blob, messages in ready:
            left = {blob.base_lsn + blob.rows[at] for at in range(first, blob.count)}
            first = 0
            kept = [m for m in messages if m.lsn in left and (permit is None or permit.may_receive(m.topic))]
            if kept:
                self._build(kept)

    def taken(self, stop: int) -> None:
        """The client has the frames up to `stop` of the last piece."""
        if stop < self._ready[0][1].count:
            self._first = stop
        else:
            self._ready.popleft()
            self._first = 0


def batch_key(message: RetainedRecord) -> tuple[int, int, int]:
    """Messages with the same can be one blob: lsns within reach of each other, and one time to expire against."""
    dated = message.row[ROW_FLAGS_AT] & ROW_EXPIRY
    return message.partition, message.lsn // LSNS_A_BLOB, message.base_ts if dated else -1
