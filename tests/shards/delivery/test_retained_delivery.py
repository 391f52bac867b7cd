"""Retained messages go out in pieces: as much a turn as everybody else can wait for, as much as the client takes."""

from collections.abc import Iterator

import pytest

from router.effects import DeliverRetained
from router.matching.retained import PIECE, FoundRetained, RetainedRecord, RetainedView
from router.readers.reader import Group, GroupKey, Reader
from router.readers.subscription import Subscription, merge
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.ports.transport import Outbox
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.session import Session, Shape
from rumq.shards.delivery.retained_delivery import BUILDS_A_TURN, LOOKS_A_TURN, RetainedDelivery

NOW_US = 1_800_000_000_000_000
ROW_V5_EXPIRY = 16 | 8


class Socket(Outbox):
    def __init__(self, room: int = 1 << 30) -> None:
        self.room, self.refused, self.data = room, False, bytearray()

    def write(self, data: object, owner: object | None = None) -> None:
        self.data += data  # type: ignore[operator]
        self.room -= len(data)  # type: ignore[arg-type]

    def waits(self) -> bool:
        return False


def message(topic: str, lsn: int, *, qos: int = 0, partition: int = 0, expiry: int = 0) -> RetainedRecord:
    """expiry: seconds, 0 for never"""
    name = topic.encode()
    properties = b"\x05\x02" + expiry.to_bytes(4, "big") if expiry else b""
    flags = qos | (ROW_V5_EXPIRY if expiry else 0)
    body = len(name).to_bytes(2, "big") + name + (b"\0\1" if qos else b"") + properties
    frame = bytes([0x30 | qos << 1, len(body) + 1]) + body + b"x"
    row = bytearray(32)
    row[20:24] = (len(frame) - 1).to_bytes(4, "little")
    row[28] = flags
    return RetainedRecord(topic, partition, lsn, NOW_US - 10_000_000, bytes(row), frame)


def topics_in(data: bytes) -> Iterator[str]:
    at = 0
    while at < len(data):
        length, head = data[at + 1], data[at]
        assert length < 128 and head & 1, "small packets, each with RETAIN"
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        yield data[at + 4 : at + 4 + size].decode()
        at += 2 + length


class Client:
    def __init__(self, handing: RetainedDelivery, room: int = 1 << 30, window: int = 10) -> None:
        self.handing, self.outbox = handing, Socket(room)
        session = Session("c", None, personal=False)
        self.window = session.open_window(window)
        self.flow = DeliveryWindow(self.outbox, session, window, [])

    def asks(self, view: RetainedView, topic_filter: str, qos: int = 0) -> bool:
        subscription = Subscription(topic_filter, qos)
        group = Group(GroupKey(frozenset([subscription]), False, (Shape(4, 0, 0), None)), 2)
        reader = Reader(1, group, [0, 0], "c")
        effect = DeliverRetained(reader, view.search(topic_filter), merge([subscription]))
        return self.flow.offer_retained(self.handing.pieces(effect))


@pytest.fixture
def view() -> RetainedView:
    return RetainedView()


@pytest.fixture
def handing(view: RetainedView) -> RetainedDelivery:
    handing = RetainedDelivery(view, DropCounters())
    handing.begin_turn(NOW_US)
    return handing


def test_a_turn_builds_so_many_messages_for_all_clients_together(view: RetainedView, handing: RetainedDelivery) -> None:
    count = 6 * BUILDS_A_TURN
    for number in range(count):
        view.put(message(f"t/{number}", number))
    clients = [Client(handing), Client(handing)]
    waiting = [client for client in clients if client.asks(view, "#")]
    turns, before = 1, 0
    while waiting:
        sent = sum(client.flow.delivered for client in clients)
        assert 0 < sent - before <= BUILDS_A_TURN + PIECE  # a piece may go over
        before = sent
        handing.begin_turn(NOW_US)
        turns += 1
        waiting = [client for client in reversed(waiting) if client.flow.go_on_with_retained()]
    for client in clients:
        assert sorted(topics_in(client.outbox.data)) == sorted(f"t/{number}" for number in range(count))
    assert turns >= 6


def test_a_search_that_finds_nothing_is_bounded_too(view: RetainedView, handing: RetainedDelivery) -> None:
    for number in range(3 * LOOKS_A_TURN):
        view.put(message(f"t/{number}", number))
    client = Client(handing)
    assert client.asks(view, "+/+/never")
    turns = 1
    while client.flow.retained:
        assert handing.looks_left > -512
        handing.begin_turn(NOW_US)
        client.flow.go_on_with_retained()
        turns += 1
    assert turns in (3, 4)
    assert not client.outbox.data


def test_a_client_gets_as_much_as_its_socket_takes(view: RetainedView, handing: RetainedDelivery) -> None:
    for number in range(1000):
        view.put(message(f"t/{number}", number))
    client = Client(handing, room=1)
    assert not client.asks(view, "#")
    sent = client.flow.delivered
    assert 0 < sent < 1000 and client.outbox.refused
    for _ in range(100):
        client.outbox.room = 1
        handing.begin_turn(NOW_US)
        client.flow.go_on_with_retained()
    assert client.flow.delivered == 1000


def test_a_window_takes_messages_one_credit_at_a_time_each_with_its_place_in_the_log(
    view: RetainedView, handing: RetainedDelivery
) -> None:
    lsns = {f"t/{number}": 1000 - number for number in range(25)}
    for topic, lsn in lsns.items():
        view.put(message(topic, lsn, qos=1, partition=lsn % 2))
    client = Client(handing, window=10)
    assert not client.asks(view, "#", qos=1)
    got: dict[str, tuple[int, int]] = {}
    while True:
        waiting = list(client.window.waiting())
        topics = list(topics_in(client.outbox.data))[len(got) :]
        assert len(topics) == len(waiting) <= 10
        for topic, (packet_id, _, code, lsn) in zip(topics, waiting, strict=True):
            got[topic] = (code & 63, lsn)
            client.window.acknowledge(0x40, packet_id)
        if not client.flow.retained:
            break
        client.flow.go_on_with_retained()
    assert got == {topic: (lsn % 2, lsn) for topic, lsn in lsns.items()}


def test_what_has_expired_leaves_the_view(view: RetainedView, handing: RetainedDelivery) -> None:
    view.put(message("old", 1, expiry=5))
    view.put(message("new", 2, expiry=60))
    view.put(message("for/ever", 3))
    client = Client(handing)
    client.asks(view, "#")
    assert sorted(topics_in(client.outbox.data)) == ["for/ever", "new"]
    assert len(view) == 2


def test_given_messages_come_in_pieces_as_well() -> None:
    given = FoundRetained([message(f"t/{number}", number) for number in range(1000)])
    pieces = []
    while not given.over:
        pieces.append(given.next_messages())
    assert max(map(len, pieces)) <= 256
    assert [m.lsn for piece in pieces for m in piece] == list(range(1000))
