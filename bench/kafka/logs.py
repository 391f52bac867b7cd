"""Logs to fetch: messages of 64 bytes on 1,000 topics, 1,000 a chunk, without properties or with four."""

from __future__ import annotations

from bench.table.spark_log import CHUNK_ROWS, START_US
from commitlog import OpenOptions, RealFiles, StoreLayout, StreamSpec, open_store
from commitlog.chunk import FLAG_QOS
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties

PAYLOAD_BYTES = 64
FOUR = Properties(
    content_type="application/json",
    user_properties=[("site", "berlin-3"), ("unit", "thousandths"), ("schema", "reading/4")],
)


def write_log(root: str, records: int, properties: Properties) -> None:
    """A log of one partition, whose last segment stays active, as after a kill."""
    spec = StreamSpec("main", ("#",), 1, "process", segment_bytes_max=1 << 28)
    store = open_store(
        RealFiles(), root, StoreLayout([spec], lambda f, t: True), OpenOptions(START_US, hot_bytes_max=0),
        holder="pid 4194304\n",
    )  # fmt: skip
    partition = store.own[0]
    wire, batch, topics = Wire(True, 1 << 20, 65535, 0), Batch(), dict[str, int]()
    wire.publishers = [partition.add_publisher("load")]
    for n in range(CHUNK_ROWS):
        message = Publish(f"plant/{n % 10}/device/{n}", b"x" * PAYLOAD_BYTES, 1, packet_id=1, properties=properties)
        frame = encode(message, 5)
        while ingest.cut(wire, [batch], frame, 0, len(frame), topics) == 0:
            if wire.stop == ingest.FULL:
                batch.grow(len(frame))
            else:
                topics[wire.topic] = partition.add_topic(wire.topic)
        wire.unacknowledged = 0
    rows, frames, _, flags, _ = batch.take()
    for n in range(records // CHUNK_ROWS):
        partition.append(bytearray(rows), bytes(frames), CHUNK_ROWS, flags | FLAG_QOS, START_US + n)
        group = partition.take_group()
        if group is not None:
            group.run()
            partition.complete(group)
