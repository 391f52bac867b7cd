"""Many inputs as one stream, by the kernel alone: what it writes is looked at whole, and every 16th frame is read."""

from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from operator import lt

from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.ingest import cut
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish
from rumq.mqtt.topics import check_topic_name
from tests.fuzz.campaign import Wrong

PARTITIONS = 2
PACKET_BYTES_MAX = 512  # a wrong length swallows the next inputs, but not all of them
ALIAS_MAX = 8


class Stream:
    """One connection that goes on behind its faults."""

    def __init__(self, version: int, seed: int) -> None:
        self.version = version
        self.counts: Counter[str] = Counter()
        self._topics = TopicTable(seed)
        self._batches = [Batch() for _ in range(PARTITIONS)]
        self._wire = Wire(version == 5, PACKET_BYTES_MAX, 65535, ALIAS_MAX)
        self._wire.publishers = [0] * PARTITIONS

    def take(self, made: list[bytes], stream: bytes) -> None:
        """A batch as one stream, by the kernel alone; behind what it refuses it goes on with the next input."""
        wire, batches, topics, end, at = self._wire, self._batches, self._topics, len(stream), 0
        starts = [0, *accumulate(map(len, made))]
        refused = 0
        while at < end:
            before = at
            at = cut(wire, batches, stream, at, end, topics)
            stop = wire.stop
            if not before <= at <= end:
                raise Wrong(f"the kernel stopped at {at}, between {before} and {end}")
            if stop == ingest.PUBLISHER:
                wire.publishers[wire.partition] = 7 + wire.partition
            elif stop == ingest.FULL:
                batches[wire.partition].grow(wire.frame_bytes)
            elif stop == ingest.TOPIC and maybe_text(wire.topic) is not None:
                number = len(topics)
                topics[wire.topic] = (number % PARTITIONS) << 32 | number
            elif at < end:
                next_input = starts[bisect_right(starts, at)]
                if stop == ingest.OTHER:
                    at = min(at + wire.frame_bytes, next_input)
                else:
                    refused += stop == ingest.FAULT
                    at = next_input
        self.counts["streams: refused"] += refused
        self.counts["streams: inputs"] += len(made)

    def look(self) -> None:
        """What was written and answered. raises: Wrong where a frame or an acknowledgement is none"""
        acks = bytes(self._wire.acks or b"")
        at = 0
        while at < len(acks):
            if acks.startswith(b"\xd0\x00", at):  # PINGRESP
                at += 2
                continue
            if acks[at] not in (0x40, 0x50, 0x62, 0x70) or acks[at + 1] not in (2, 3):
                raise Wrong(f"an acknowledgement {acks[at : at + 4].hex(' ')}")
            at += 2 + acks[at + 1]
        if at != len(acks):
            raise Wrong("half an acknowledgement")
        for batch in self._batches:
            rows, frames, count, _, tags = batch.take()
            words = memoryview(rows).cast("I").tolist()
            starts = [*words[1::8], len(frames)]
            if len(starts) != count + 1 or len(tags) & 7:
                raise Wrong(f"{len(starts) - 1} of {count} rows, {len(tags)} bytes of tags")
            if count and (starts[0] or not all(map(lt, starts, starts[1:]))):
                raise Wrong("frames that overlap")
            self.counts["streams: packets"] += count
            for row in range(0, count, 16):
                start, stop = starts[row], starts[row + 1]
                head = frame_at(frames, start, stop, version=self.version)
                if head is None or sum(head) != stop - start:
                    raise Wrong(f"a frame from {start} to {stop} that says {head}")
                packet = decode(frames[start], frames[start + head[0] : stop], self.version)
                assert isinstance(packet, Publish)
                if frames[start + words[8 * row + 5] : stop] != packet.payload:
                    raise Wrong(f"the payload of {packet} is not where its row says")


def maybe_text(name: bytes) -> str | None:
    """A topic that may be published to."""
    try:
        text = name.decode()
        check_topic_name(text)
    except (UnicodeDecodeError, MqttFault):
        return None
    return text
