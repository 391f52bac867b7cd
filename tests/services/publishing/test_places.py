"""Which id a message got: the n-th acknowledged message of a topic is the n-th record of its connection there."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from commitlog import Chunk
from commitlog.row_layout import ROW
from rumq.services.generated.broker_service_pb2 import Message
from rumq.services.publishing.batch import PublishBatch
from rumq.services.publishing.frames import outgoing
from rumq.services.publishing.places import AcknowledgedPublish, PlaceSearch

TOPICS = ["a", "b", "c"]
OWN, STRANGER = 5, 6


def chunk_of(records: list[tuple[int, int, int]]) -> Chunk:
    """records: topic, offset, publisher"""
    rows, frames = b"", b""
    for topic, offset, publisher in records:
        made = outgoing(Message(topic=TOPICS[topic]), 1_000)
        rows += ROW.pack(topic, len(frames), offset, 0, 0, publisher, 17, 0)
        frames += made.head + b"\0\1" + made.tail
    return Chunk(0, len(records), 0, 0, rows, frames)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from(["ack", "refuse", "stranger"])), max_size=40),
       st.data())  # fmt: skip
def test_ids_are_those_of_the_log_whenever_acks_come(story: list[tuple[int, str]], data: st.DataObject) -> None:
    """Refused messages have no record, others publish too; acknowledgements come before or after the records."""
    search, offsets = PlaceSearch(), defaultdict(int)
    batch = PublishBatch([outgoing(Message(topic=TOPICS[topic]), 1_000) for topic, _ in story], {})
    records, acks, wanted = [], [], {}
    for number, (topic, what) in enumerate(story):
        if what == "refuse":
            continue
        records.append((topic, offsets[topic], OWN if what == "ack" else STRANGER))
        if what == "ack":
            acks.append(AcknowledgedPublish(TOPICS[topic].encode(), batch, number))
            wanted[number] = offsets[topic] + 1
        offsets[topic] += 1
    while records or acks:
        if acks and (not records or data.draw(st.booleans())):
            count = data.draw(st.integers(1, len(acks)))
            search.acknowledged(acks[:count], now=0.0)
            del acks[:count]
        else:
            count = data.draw(st.integers(1, len(records)))
            search.look("main/g1/p0", chunk_of(records[:count]), {OWN})
            del records[:count]
    assert search.left == 0
    assert {number: each for number, each in enumerate(batch.ids) if each} == wanted


def test_a_copy_that_is_late_gives_no_later_message_the_id_of_an_earlier_one() -> None:
    search = PlaceSearch()
    batch = PublishBatch([outgoing(Message(topic="a"), 1_000)] * 3, {})
    search.acknowledged([AcknowledgedPublish(b"a", batch, 0), AcknowledgedPublish(b"a", batch, 1)], now=1.0)
    assert search.give_up(before=0.5) == 0
    assert search.give_up(before=2.0) == 2 and search.left == 0
    search.acknowledged([AcknowledgedPublish(b"a", batch, 2)], now=3.0)
    search.look("p", chunk_of([(0, 10, OWN), (0, 12, OWN)]), {OWN})  # of the two that were given up
    assert search.left == 1
    search.look("p", chunk_of([(0, 13, OWN)]), {OWN})
    assert batch.ids == [0, 0, 14]
