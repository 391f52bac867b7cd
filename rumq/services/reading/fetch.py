"""One record by its topic and number, from the files of the log. Blocks; for a thread."""

from __future__ import annotations

from collections.abc import Iterable

from commitlog import Gap
from commitlog.read.partition_view import PartitionView
from rumq.services.contract.faults import CallFault
from rumq.services.generated.broker_service_pb2 import FetchResponse, SubscribeResponse
from rumq.services.kernels.record_messages import NEVER, put_records, topic_at

ROOM_BYTES = 4096
FRAME_WORD, ROW_WORDS, OFFSET_WORD = 1, 8, 2


def fetched(
    views: Iterable[PartitionView], topic: str, message_id: int, now_us: int, *, with_publisher: bool = False
) -> FetchResponse:
    """raises: CallFault for a record that is not there, OSError"""
    name, offset = topic.encode(), message_id - 1
    lost = False
    is_known = False
    for view in views:
        if name not in view.names()[0].values():
            continue
        is_known = True
        lsn = view.find_offset(name, offset)
        if lsn >= view.end_lsn:
            continue
        for chunk in view.chunks(lsn, lsn + 1):
            if isinstance(chunk, Gap):
                lost = True
                continue
            words = memoryview(chunk.rows).cast("B").cast("I")
            found = words[OFFSET_WORD] | words[OFFSET_WORD + 1] << 32
            if topic_at(chunk.frames, words[FRAME_WORD]) != name or found != offset:
                lost = True  # the next one that is kept
                continue
            publishers = view.publishers(lsn, lsn + 1) if with_publisher else {}
            buffer = bytearray(ROOM_BYTES + 3 * len(chunk.frames) + len(view.name))
            wanted = {words[0]: (0, NEVER)}
            written, count, _, _ = put_records(
                chunk, 0, wanted, view.name.encode(), publishers, now_us, buffer, len(buffer)
            )
            if not count:
                raise CallFault(
                    "ID_EXPIRED", f"record {message_id} of {topic!r} has expired", topic=topic, id=message_id
                )
            return FetchResponse(record=SubscribeResponse.FromString(bytes(buffer[:written])).records[0])
    if lost:
        raise CallFault(
            "ID_REMOVED",
            f"record {message_id} of {topic!r} is kept no longer: retention has removed it, or its file is damaged",
            topic=topic, id=message_id,
        )  # fmt: skip
    why = f"{topic!r} has none with this or a later id" if is_known else f"there is no topic {topic!r}"
    raise CallFault("ID_UNKNOWN", f"record {message_id} is not known: {why}", topic=topic, id=message_id)
