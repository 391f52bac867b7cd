"""Messages of a queue as the log stores them: one record, decoded. docs/reference/log-format.md, "Chunk"."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from commitlog.chunk import Chunk
from commitlog.row_layout import ROW, ROW_V5
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish
from rumq.queues.rules.messages import Delivered
from rumq.queues.rules.names import MessageId, split_topic
from rumq.queues.rules.packets import message_of


def topic_at(frames: bytes | memoryview, start: int) -> bytes:
    """The topic of the frame that begins there."""
    found = frame_at(frames, start, len(frames))
    assert found is not None
    at = start + found[0]
    size = frames[at] << 8 | frames[at + 1]
    return bytes(frames[at + 2 : at + 2 + size])


def messages_of(chunk: Chunk, wants: Callable[[bytes], bool], now_us: int) -> Iterator[Delivered]:
    """The unexpired messages of a chunk whose topics are wanted, with 0 tries. cost: a look at each of its topics"""
    frames = memoryview(chunk.frames)
    rows = list(ROW.iter_unpack(chunk.rows))
    wanted: dict[int, bool] = {}
    for number, (topic_id, start, offset, after, _, _, flags, _) in enumerate(rows):
        is_wanted = wanted.get(topic_id)
        if is_wanted is None:
            is_wanted = wanted[topic_id] = wants(topic_at(frames, start))
        if not is_wanted:
            continue
        stop = rows[number + 1][1] if number + 1 < len(rows) else len(frames)
        packet = publish_of(bytes(frames[start:stop]), flags)
        arrived_us = chunk.base_ts + after
        if now_us < arrived_us + 1_000_000 * packet.properties.get("message_expiry_interval", 1 << 40):
            topic = split_topic(packet.topic)[1]
            yield message_of(packet, MessageId(topic, offset + 1), arrived_us)._replace(tries=0)


def publish_of(frame: bytes, flags: int) -> Publish:
    head = frame_at(frame, 0, len(frame))
    assert head is not None
    packet = decode(frame[0], frame[head[0] :], 5 if flags & ROW_V5 else 4)
    assert isinstance(packet, Publish)
    return packet
