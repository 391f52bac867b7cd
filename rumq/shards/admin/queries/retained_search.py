"""Retained messages of a shard's own partitions, searched by filter: a page from a topic on, some names a turn."""

from __future__ import annotations

import base64

from commitlog.row_layout import ROW, ROW_QOS
from router.matching.retained import RetainedRecord, RetainedView
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.loop.ports import Timers
from rumq.loop.read_gate import ReadGate
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.topics import check_topic_filter, matches
from rumq.shards.admin.listings.listings import Done, MayRead

PAYLOAD_BYTES_MAX = 1024
PAGES_A_TURN = 4  # a page has some hundred names


class RetainedSearch:
    def __init__(self, view: RetainedView, timers: Timers, reads: ReadGate) -> None:
        self._view, self._timers, self._reads = view, timers, reads

    def list(self, asked: q.Retained, may_read: MayRead, done: Done) -> None:
        """may_read: others are not counted. raises: ValueError for what is no filter"""
        try:
            check_topic_filter(asked.topic)
        except MqttFault as fault:
            raise ValueError(str(fault)) from None
        self._reads.when_open(lambda: self._list(asked, may_read, done))

    def _list(self, asked: q.Retained, may_read: MayRead, done: Done) -> None:
        prefix = literal_prefix(asked.topic)
        found: list[RetainedRecord] = []
        after = place(max(asked.after or "", prefix)) if asked.after or prefix else None
        if prefix > (asked.after or "") and (first := self._view.get(prefix)) is not None:
            found += [first] if matches(asked.topic, prefix) and may_read(prefix) else []  # the page begins behind it

        def go_on() -> None:
            nonlocal after
            for _ in range(PAGES_A_TURN):
                messages = self._view.page(after)
                is_over = not messages or (bool(prefix) and not messages[-1].topic.startswith(prefix))
                found.extend(each for each in messages if matches(asked.topic, each.topic) and may_read(each.topic))
                if is_over or len(found) > asked.limit:
                    kept = found[: asked.limit]
                    done({"messages": [row(each) for each in kept], "left_out": len(found) - len(kept)})
                    return
                after = messages[-1]
            self._timers.next_turn(go_on)

        go_on()


def literal_prefix(topic_filter: str) -> str:
    """What every topic begins with that the filter matches."""
    literal = topic_filter.partition("+")[0].partition("#")[0]
    return literal.removesuffix("/")


def place(topic: str) -> RetainedRecord:
    """A place in the order of topics, for a page behind it."""
    return RetainedRecord(topic, 0, 0, 0, b"", b"")


def row(message: RetainedRecord) -> r.RetainedRow:
    _, _, _, late_us, payload_at, _, flags, _ = ROW.unpack(message.row)
    payload = message.frame[payload_at:]
    shown, encoding = as_text(payload[:PAYLOAD_BYTES_MAX])
    return r.RetainedRow(
        topic=message.topic, qos=flags & ROW_QOS, partition=message.partition, lsn=message.lsn,
        time_us=message.base_ts + late_us, bytes=len(payload), payload=shown, encoding=encoding,
    )  # fmt: skip


def as_text(data: bytes) -> tuple[str, str]:
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"
