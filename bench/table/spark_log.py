"""A log to read, as a broker under load writes it: `python -m bench.table.spark_log DIR`. 2 million messages of 64
bytes on 1,000 topics, 1,000 a chunk; the last segments are not sealed."""

import sys

from commitlog import OpenOptions, Partition, RealFiles, StoreLayout, StreamSpec, open_store
from commitlog.chunk import FLAG_QOS
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish

CHUNK_ROWS = 1000
START_US = 1_790_000_000_000_000


def chunks_of(
    partition: Partition, payload: bytes, count: int = CHUNK_ROWS, first_topic: int = 0
) -> tuple[bytes, bytes, int]:
    """Rows, frames and flags of a chunk of `count` messages, each on another topic, from number `first_topic` on."""
    wire, batch = Wire(True, 1 << 20, 65535, 0), Batch()
    wire.publishers = [partition.add_publisher("load")]
    topics = {name: number for number, name in enumerate(partition.topic_names)}
    for n in range(first_topic, first_topic + count):
        frame = encode(Publish(f"plant/{n % 10}/device/{n}", payload, 1, False, packet_id=1), 5)
        while ingest.cut(wire, [batch], frame, 0, len(frame), topics) == 0:
            if wire.stop == ingest.FULL:
                batch.grow(len(frame))
            else:
                topics[wire.topic] = partition.add_topic(wire.topic)
        wire.unacknowledged = 0
    rows, frames, _, flags, _ = batch.take()
    return bytes(rows), bytes(frames), flags


def fill(root: str, records: int, *, partitions: int = 2, payload_bytes: int = 64) -> None:
    """Write a log whose last segments stay active, as after a kill."""
    spec = StreamSpec("main", ("#",), partitions, "process", segment_bytes_max=1 << 30)
    store = open_store(
        RealFiles(),
        root,
        StoreLayout([spec], lambda f, t: True),
        OpenOptions(START_US, hot_bytes_max=0),
        holder="pid 4194304\n",
    )
    for partition in store.own:
        rows, frames, flags = chunks_of(partition, b"x" * payload_bytes)
        for n in range(records // partitions // CHUNK_ROWS):
            partition.append(bytearray(rows), frames, CHUNK_ROWS, flags | FLAG_QOS, START_US + n)
            group = partition.take_group()
            if group is not None:
                group.run()
                partition.complete(group)


if __name__ == "__main__":
    fill(sys.argv[1], 2_000_000)
