"""Questions about partitions of other shards: each is answered by its owner, and an answer joins what several say."""

from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import Chunk, Gap
from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.matching.retained import RetainedRecord
from router.shard import ShardRouter
from rumq.shards.bus import messages as m
from rumq.shards.peers.query_client import QueryClient, chunks_of, retained_of
from rumq.shards.peers.query_server import Asker, RestartQueries, items_of, joined, log_tags
from tests.commitlog.records import append, opened, write
from tests.shards.bus.world import Hand, Other

NONE = memoryview(b"")


class Client:
    def __init__(self) -> None:
        self.hand, self.others = Hand(), {1: Other(1), 2: Other(2)}
        self.partition = SimpleNamespace(index=5, owner=1, first_lsn=0, name_topics=lambda names: None)
        feeds: Any = SimpleNamespace(partition=lambda index: self.partition, drop_cached=lambda: None)
        self.away: set[int] = set()  # shards that nobody waits for
        interest: Any = SimpleNamespace(
            confirm=lambda filters, then, marks: True, is_away=lambda index: index in self.away
        )
        self.client = QueryClient(self.others, feeds, self.hand, interest)


@pytest.fixture
def asked() -> Client:
    return Client()


def test_chunks_are_read_from_the_owner_and_a_fault_is_an_error(asked: Client) -> None:
    found: list[Any] = []
    asked.client.read(5, 7, lambda chunks, fault: found.append((chunks, fault)))
    answer = m.Chunks(1, 5, 3, [], [m.Piece(7, 9, 0, 0, 0, 0, "damaged")], "EIO")
    assert asked.others[1].answer(answer) == m.ReadFrom(1, 5, 7)
    ((chunks, fault),) = found
    assert chunks == [Gap(7, 9, "damaged")] and isinstance(fault, OSError)
    assert asked.partition.first_lsn == 3 and not asked.others[2].asked


def test_owners_that_were_away_are_told_that_this_shard_stands_where_it_stood(asked: Client) -> None:
    for index, other in asked.others.items():
        other.partitions = [SimpleNamespace(index=index)]
    asked.away = {2}
    subscription: Any = SimpleNamespace(topic_filter="a/+")
    effect: Any = SimpleNamespace(reader=None, subscription=subscription, below={1: 7, 2: 9})
    asked.client.find_retained(effect)
    assert asked.others[1].answer(m.SearchAnswer(1, {}, [])) == m.RetainedQuestion(1, "a/+", {1: 7})
    assert asked.others[2].answer(m.SearchAnswer(1, {}, [])) == m.RetainedQuestion(1, "a/+", {2: 9}, is_met=False)


def test_a_replay_starts_once_all_owners_and_this_shard_have_searched(asked: Client) -> None:
    reader: Any = SimpleNamespace(
        group=SimpleNamespace(wants=SimpleNamespace(subscriptions=[SimpleNamespace(topic_filter="#")]))
    )
    effect: Any = SimpleNamespace(reader=reader, ts_us=9, topic=None, offset=None, retained="#")
    message = RetainedRecord("t", 2, 1, 0, b"row", b"frame")
    asked.client.find_start(effect, lambda found: found({0: 4}, []), None)
    asked.others[1].answer(m.SearchAnswer(1, {1: 5}, []))
    other = asked.others[2].asked[0][1]
    other(m.SearchAnswer(1, {}, items_of([message]), more=True), NONE)
    assert not asked.hand.items
    other(m.SearchAnswer(1, {2: 6}, []), NONE)
    (start,) = asked.hand.items
    assert isinstance(start, c.StartFound)
    assert start.lsns == {0: 4, 1: 5, 2: 6} and start.retained == [message]


def test_inbound_qos_2_messages_are_asked_of_every_owner(asked: Client) -> None:
    found: list[Any] = []
    asked.others[2].partitions = [SimpleNamespace(index=1)]
    asked.client.find_tags([0, 8], lambda shard, tags: found.append((shard, tags)))
    assert asked.others[2].answer(m.Tags(1, [("c", 3)])) == m.FindTags(1, {1: 8})
    assert found == [(2, m.Tags(1, [("c", 3)]))]


def test_an_answer_s_raw_bytes_are_cut_by_its_pieces() -> None:
    pieces = [m.Piece(0, 1, 5, 1, 4, 2), m.Piece(1, 3, 6, 0, 0, 0, "gone"), m.Piece(3, 4, 7, 0, 4, 3)]
    first, gap, last = chunks_of(m.Chunks(1, 0, 0, [], pieces), memoryview(b"rowsfrmorefra"))
    assert isinstance(first, Chunk) and (first.rows, first.frames) == (b"rows", b"fr")
    assert gap == Gap(1, 3, "gone")
    assert isinstance(last, Chunk) and (last.base_lsn, last.frames) == (3, b"fra")


def test_retained_messages_are_the_same_on_the_other_side() -> None:
    message = RetainedRecord("t", 2, 1, 9, b"row", b"frame")
    assert retained_of(m.SearchAnswer(1, {}, items_of([message]))) == [message]


def test_small_chunks_in_memory_are_sent_as_one() -> None:
    partition = opened(SimulatedFiles(), hot=1 << 20).partitions[0]
    chunks = [append(partition, [(b"t", b"%d" % n)]) for n in range(3)]  # type: ignore[arg-type]
    (one,) = joined(chunks)
    assert isinstance(one, Chunk) and (one.base_lsn, one.count) == (0, 3)
    gap = Gap(3, 5, "damaged")
    assert list(joined([gap])) == [gap]


class Pool:
    def submit(self, job: Any, done: Any, lane: int = 0) -> None:
        done(job(), None)


def test_inbound_qos_2_messages_are_found_once_they_are_committed_for_clients_of_the_asker() -> None:
    store = opened(SimulatedFiles())
    partition = store.own[0]
    hand, said = Hand(), list[Any]()
    urgent: list[int] = []
    guard: Any = None
    queries = RestartQueries(store, Pool(), hand, hand, guard, urgent.append)
    asker = Asker(1, SimpleNamespace(say=said.append, closed=False), SimpleNamespace())  # type: ignore[arg-type]
    append(partition, [(b"t", b"1")], client_id="lives-in-1", tags={0: 9})
    append(partition, [(b"t", b"2")], client_id="lives-in-2", tags={0: 8})
    queries.find_tags(asker, m.FindTags(4, {0: 0}))
    assert urgent == [0] and not said
    write(partition)
    hand.waiting.pop()[1]()
    assert said == [m.Tags(4, [("lives-in-1", 9)], {0: 2})]
    assert [name for name, _ in log_tags(store, partition, 1)] == ["lives-in-2"]


def test_a_publisher_is_told_how_much_of_its_records_the_log_has() -> None:
    store = opened(SimulatedFiles())
    partition = store.own[0]
    partition.add_topic(b"t")
    for source, sequence in ((7, 5), (8, 9), (7, 6)):
        row = bytearray(32)
        sources = source.to_bytes(8, "little") + sequence.to_bytes(8, "little")
        partition.append(row, b"\x30\x00", 1, 0, 0, b"", sources)
    write(partition)
    said: list[Any] = []
    guard: Any = None
    hand = Hand()
    queries = RestartQueries(store, Pool(), hand, hand, guard, lambda index: None)
    asker = Asker(1, SimpleNamespace(say=said.append, closed=False), SimpleNamespace())  # type: ignore[arg-type]
    queries.resume(asker, 7, m.Resume(0, 0))
    queries.resume(asker, 9, m.Resume(0, 0))
    assert said == [m.Resumed(0, 6), m.Resumed(0, 0)]


def test_a_publisher_whose_link_alone_was_lost_is_told_of_records_that_are_not_written_yet() -> None:
    """It would publish them once more."""
    store = opened(SimulatedFiles())
    partition = store.own[0]
    partition.add_topic(b"t")
    sources = (7).to_bytes(8, "little") + (5).to_bytes(8, "little")
    partition.append(bytearray(32), b"\x30\x00", 1, 0, 0, b"", sources)
    said: list[Any] = []
    urgent: list[int] = []
    guard: Any = None
    hand = Hand()
    queries = RestartQueries(store, Pool(), hand, hand, guard, urgent.append)
    link = SimpleNamespace(say=said.append, closed=False)
    queries.resume(Asker(1, link, SimpleNamespace()), 7, m.Resume(0, 0))  # type: ignore[arg-type]
    assert not said and urgent == [0]
    write(partition)
    hand.waiting.pop()[1]()
    assert said == [m.Resumed(0, 5)]


def test_nobody_waits_for_an_answer_over_a_link_that_is_gone() -> None:
    store = opened(SimulatedFiles())
    partition = store.own[0]
    append(partition, [(b"t", b"1")])
    guard: Any = None
    hand = Hand()
    queries = RestartQueries(store, Pool(), hand, hand, guard, lambda index: None)
    link = SimpleNamespace(say=None, closed=False)
    queries.resume(Asker(1, link, SimpleNamespace()), 7, m.Resume(0, 0))  # type: ignore[arg-type]
    link.closed = True
    hand.waiting.pop()[1]()
    assert not hand.waiting


def test_nothing_is_asked_where_there_is_no_other_shard() -> None:
    hand = Hand()
    nobody: Any = None
    client = QueryClient({}, nobody, hand, nobody)
    client.find_tags([0], lambda shard, tags: None)
    client.leave_behind(0, 5, lambda: None)
    assert client.count == 0 and ShardRouter([]).feeds == []
