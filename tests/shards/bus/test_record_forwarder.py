"""Records for another shard: its filters, and the names that it needs."""

from types import SimpleNamespace
from typing import Any

from router import commands as c
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink, decode
from rumq.shards.bus.record_forwarder import PublisherNames, RecordForwarder, RemoteSubscriber
from tests.shards.bus.world import Hand, LinkEnd


def link() -> tuple[BusLink, LinkEnd]:
    transport = LinkEnd()
    return BusLink(transport, lambda message, raw: None, lambda why: None, lambda: None), transport


def said(transport: LinkEnd) -> list[Any]:
    found, data = [], bytes(transport.written)
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(decode(memoryview(data[4 : 4 + size]))[0])
        data = data[4 + size :]
    transport.written.clear()
    return found


def subscriber() -> tuple[RemoteSubscriber, Hand]:
    hand = Hand()
    own: Any = [SimpleNamespace(index=3, publisher_names=[b"", b"pump"])]
    return RemoteSubscriber(1, own, [], hand, hand), hand


def test_a_filter_is_confirmed_after_the_step_that_takes_it_up() -> None:
    remote, hand = subscriber()
    bus, transport = link()
    marks: list[None] = []
    remote.begin(bus, m.Begin(["a"], {3: 7}, {}, {}), lambda answer: (marks.append(None), answer()))
    attach, interest = hand.items
    assert isinstance(attach, c.Attach)
    assert isinstance(interest, c.Interest) and (interest.own, interest.cursors) == ([3], {3: 7})
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
    assert [type(command) for command in hand.items] == [c.Attach, c.Interest, c.Interest]


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
    remote.introduce(3)
    assert not said(transport)
    remote.want_publishers(bus, m.WantPublishers(2))
    assert said(transport) == [m.Publishers(3, 1, [b"pump"]), m.Wanted(2)]
    remote.introduce_all()
    assert not said(transport)


def test_new_publishers_follow_where_the_last_ones_ended() -> None:
    bus, transport = link()
    names = [b"", b"a"]
    own: Any = [SimpleNamespace(index=0, publisher_names=names)]
    known = PublisherNames(bus, own)
    known.introduce(0)
    names += [b"b", b"c"]
    known.introduce(0)
    assert said(transport) == [m.Publishers(0, 1, [b"a"]), m.Publishers(0, 2, [b"b", b"c"])]


def test_a_full_bus_blocks_its_reader_and_queues_nothing() -> None:
    remote, hand = subscriber()
    transport = LinkEnd(room=0)
    bus = BusLink(transport, lambda message, raw: None, lambda why: None, lambda: None)
    reader = object()
    effect: Any = SimpleNamespace(
        chunk=SimpleNamespace(base_lsn=100), partition=3, first=2, stop=5, readers=[reader]
    )
    RecordForwarder(bus, [], hand, remote).forward(effect)
    (blocked,) = hand.items
    assert isinstance(blocked, c.Blocked) and (blocked.partition, blocked.lsn) == (3, 102)
    assert transport.refused and not transport.written
