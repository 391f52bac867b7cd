"""Records for another shard: its filters, and the names that it needs."""

from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.names.publisher_names import PublisherNames
from commitlog.row_layout import ROW
from router import commands as c
from rumq.shards.bus import messages as m
from rumq.shards.bus import record_forwarder
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.record_forwarder import RecordForwarder, RemoteSubscriber, SentNames
from tests.shards.bus.world import Hand, LinkEnd, decoded


def link() -> tuple[BusLink, LinkEnd]:
    transport = LinkEnd()
    return BusLink(transport, lambda message, raw: None, lambda why: None, lambda: None), transport


def said(transport: LinkEnd) -> list[Any]:
    found, data = [], bytes(transport.written)
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(decoded(data[: 4 + size])[0])
        data = data[4 + size :]
    transport.written.clear()
    return found


def rows_of(*publishers: int) -> bytes:
    return b"".join(ROW.pack(0, 0, 0, 0, 0, publisher, 0, 0) for publisher in publishers)


def subscriber() -> tuple[RemoteSubscriber, Hand]:
    hand = Hand()
    own: Any = [SimpleNamespace(index=3, publisher_names=PublisherNames({1: b"pump"}, 2))]
    return RemoteSubscriber(1, own, [], hand, hand), hand


def test_a_filter_is_confirmed_after_the_step_that_takes_it_up() -> None:
    remote, hand = subscriber()
    bus, transport = link()
    marks: list[None] = []
    remote.begin(bus, m.Begin(["a"], {3: 7}, {}, {}), lambda answer: (marks.append(None), answer()))
    attach, interest = hand.items
    assert isinstance(attach, c.Attach)
    assert isinstance(interest, c.SubscribeShard) and (interest.own, interest.cursors) == ([3], {3: 7})
    remote.want(bus, m.Want(5, ["b"]), lambda answer: (marks.append(None), answer()))
    assert not said(transport)
    hand.step()
    assert said(transport) == [m.Wanted(5)] and marks == [None], "watermarks first"


def test_filters_that_come_before_begin_wait_for_it() -> None:
    remote, hand = subscriber()
    bus, _ = link()
    remote.want(bus, m.Want(5, ["b"], marks=True), lambda answer: answer())
    assert not hand.items and remote.wants_marks
    remote.begin(bus, m.Begin([], {}, {}, {}), lambda answer: answer())
    assert [type(command) for command in hand.items] == [c.Attach, c.SubscribeShard, c.SubscribeShard]


def test_with_its_link_a_shard_s_filters_end() -> None:
    remote, hand = subscriber()
    bus, _ = link()
    remote.begin(bus, m.Begin([], {}, {}, {}), lambda answer: answer())
    hand.items.clear()
    remote.lost()
    assert [type(command) for command in hand.items] == [c.End]
    remote.drained()
    remote.unwant(m.Unwant(["a"]), memoryview(b""))
    assert len(hand.items) == 1


def test_publishers_are_named_once_and_only_to_shards_that_ask() -> None:
    remote, _ = subscriber()
    bus, transport = link()
    remote.introduce(3, rows_of(1))
    assert not said(transport)
    remote.want_publishers(bus, m.WantPublishers(2))
    assert said(transport) == [m.Publishers(3, 1, [b"pump"]), m.Wanted(2)]
    remote.introduce(3, rows_of(0, 1, 1))
    assert not said(transport)


def test_publishers_are_named_as_their_records_come_in_runs_of_numbers() -> None:
    bus, transport = link()
    own: Any = [SimpleNamespace(index=0, publisher_names={1: b"a", 2: b"b", 3: b"c", 5: b"e"})]
    known = SentNames(bus, own)
    known.introduce(0, {0, 1}, None)
    known.introduce(0, {3, 1, 2, 5}, None)
    known.introduce(0, {9}, {9: b"of the chunk"})
    assert said(transport) == [
        m.Publishers(0, 1, [b"a"]), m.Publishers(0, 2, [b"b", b"c"]), m.Publishers(0, 5, [b"e"]),
        m.Publishers(0, 9, [b"of the chunk"]),
    ]  # fmt: skip


def test_what_is_known_of_the_other_shard_s_names_is_bounded_and_never_more_than_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_forwarder, "SENT_MAX", 8)
    bus, transport = link()
    own: Any = [SimpleNamespace(index=0, publisher_names={n: b"p%d" % n for n in range(1, 200)})]
    sent = SentNames(bus, own)
    there = PublisherNames({}, 1, 16)
    for number in range(1, 200):
        used = {1, number}  # one that publishes all the time
        sent.introduce(0, used, None)
        for message in said(transport):
            assert isinstance(message, m.Publishers)
            there.learn(dict(enumerate(message.names, message.first)))
        assert all(there.get(n) == b"p%d" % n for n in used)
    assert len(there) <= 16 and len(sent._sent[0]) <= 9


def test_a_full_bus_blocks_its_reader_and_queues_nothing() -> None:
    remote, hand = subscriber()
    transport = LinkEnd(room=0)
    bus = BusLink(transport, lambda message, raw: None, lambda why: None, lambda: None)
    reader = object()
    effect: Any = SimpleNamespace(chunk=SimpleNamespace(base_lsn=100), partition=3, first=2, stop=5, readers=[reader])
    RecordForwarder(bus, [], hand, remote).forward(effect)
    (blocked,) = hand.items
    assert isinstance(blocked, c.Blocked) and (blocked.partition, blocked.lsn) == (3, 102)
    assert transport.refused and not transport.written
