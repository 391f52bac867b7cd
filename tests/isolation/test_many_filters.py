"""Thousands of filters of one client cost each turn the same little, and the others go on in between."""

from collections.abc import Iterator

import pytest

from router.matching.groups import FILTERS_AT_ONCE, REMOVED_AT_ONCE
from rumq.session.protocol.batched_subscribe import SHORT_BYTES
from rumq.session.protocol.subscribe import CHECKS_A_TURN, FILTERS_A_TURN
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.isolation.turns import Connection, Others, Turned, payloads, turned

COUNT = 1_000
FILTERS = [f"many/{number}/+" for number in range(COUNT)]
ASKED = [(topic_filter, 1) for topic_filter in FILTERS]


@pytest.fixture
def shard() -> Iterator[Turned]:
    made = turned()
    yield made
    made.end()


def known(shard: Turned) -> int:
    """How many filters the router has."""
    return shard.parts.router.groups.filters.count


def turns_until_quiet(shard: Turned, others: Others, client: Connection, bound: int) -> int:
    """Turns until the client may speak again and nothing is left to do; no turn adds or takes more than `bound`."""
    turns, before = 0, known(shard)
    while client.is_held or shard.parts.turn.seconds_to_next_deadline() == 0:
        others.live_through_a_turn()
        assert abs(known(shard) - before) <= bound
        turns, before = turns + 1, known(shard)
        assert turns <= 10 * COUNT
    return turns


def test_a_share_is_a_fraction_of_a_millisecond() -> None:
    """A filter costs about 7 µs to grant and 2 to take away: what a turn does is less than a disk's sync."""
    assert FILTERS_A_TURN <= 64
    assert FILTERS_AT_ONCE <= 128 and REMOVED_AT_ONCE <= 32


def in_packets(size: int) -> list[bytes]:
    starts = range(0, COUNT, size)
    return [wire.subscribe(1 + at // size, ASKED[at : at + size]) for at in starts]


@pytest.mark.parametrize("size", [COUNT, 100, 8])
def test_a_turn_grants_a_bounded_number_of_them(shard: Turned, size: int) -> None:
    """All in one packet, or in many that come at once; each is answered in full and in its order."""
    others, greedy = Others(shard), Connection(shard, "greedy")
    before = known(shard)
    greedy.send(*in_packets(size))
    # A short packet is served at once; and what is sent here is read before the first turn, so that one has two.
    bound = 2 * max(size, FILTERS_A_TURN) if len(in_packets(size)[0]) < SHORT_BYTES else FILTERS_A_TURN
    assert turns_until_quiet(shard, others, greedy, bound) >= COUNT // bound
    answers = greedy.take()
    assert [(packet.kind, packet.packet_id) for packet in answers] == [
        (Kind.SUBACK, 1 + number) for number in range(COUNT // size)
    ]
    assert [code for packet in answers for code in packet.codes] == [1] * COUNT
    assert known(shard) == before + COUNT


def test_what_comes_behind_a_long_subscribe_waits_for_it(shard: Turned) -> None:
    greedy = Connection(shard, "greedy")
    greedy.send(wire.subscribe(1, ASKED), wire.publish("many/999/x", b"mine", 1, 7))
    assert greedy.has_unread
    shard.settle()
    while greedy.has_unread:
        shard.turn()
    shard.settle()
    kinds = [packet.kind for packet in greedy.take()]
    assert kinds[0] == Kind.SUBACK
    assert sorted(kinds[1:]) == sorted([Kind.PUBACK, Kind.PUBLISH]), "the last filter is there for it"


def test_what_the_first_filters_bring_need_not_wait_for_the_last(shard: Turned) -> None:
    """MQTT 5.0, 3.8.4: the server may send PUBLISH packets before the SUBACK."""
    greedy, publisher = Connection(shard, "greedy"), Connection(shard, "publisher")
    greedy.send(wire.subscribe(1, ASKED))
    for _ in range(-(-COUNT // CHECKS_A_TURN) + 1):  # all are looked at before the first is granted
        shard.turn()
    publisher.send(wire.publish("many/0/x", b"early"))
    shard.turn()
    assert payloads(greedy.take()) == [b"early"]


def test_a_long_unsubscribe_takes_its_turns_too(shard: Turned) -> None:
    others, greedy = Others(shard), Connection(shard, "greedy")
    before = known(shard)
    greedy.send(wire.subscribe(1, ASKED))
    turns_until_quiet(shard, others, greedy, FILTERS_A_TURN)
    greedy.take()
    greedy.send(wire.unsubscribe(2, [*FILTERS[1:], "never/was"]))
    assert turns_until_quiet(shard, others, greedy, FILTERS_A_TURN) >= COUNT // FILTERS_A_TURN
    (answer,) = greedy.take()
    assert (answer.kind, answer.packet_id, list(answer.codes)) == (
        Kind.UNSUBACK,
        2,
        [0] * (COUNT - 1) + [0x11],
    )
    assert known(shard) == before + 1


def test_a_fault_in_the_middle_ends_the_connection(shard: Turned) -> None:
    others, greedy = Others(shard), Connection(shard, "greedy")
    before = known(shard)
    greedy.send(wire.subscribe(1, [*ASKED[:500], ("wrong/#/there", 1), *ASKED[500:]]))
    while not greedy.closed:
        others.live_through_a_turn()
    (answer,) = greedy.take()
    assert (answer.kind, answer.code) == (Kind.DISCONNECT, 0x8F)
    while known(shard) > before:
        others.live_through_a_turn()


def test_a_client_that_leaves_in_the_middle_asks_for_no_more(shard: Turned) -> None:
    others, greedy = Others(shard), Connection(shard, "greedy")
    before = known(shard)
    greedy.send(wire.subscribe(1, ASKED))
    others.live_through_a_turn()
    greedy.link.lost("gone")
    for _ in range(COUNT):
        others.live_through_a_turn()
    assert known(shard) == before


def test_a_session_that_ends_takes_its_filters_along_piece_by_piece(shard: Turned) -> None:
    others, greedy = Others(shard), Connection(shard, "greedy")
    before = known(shard)
    greedy.send(wire.subscribe(1, ASKED))
    turns_until_quiet(shard, others, greedy, FILTERS_A_TURN)
    greedy.take()
    greedy.send(wire.disconnect())
    assert turns_until_quiet(shard, others, greedy, REMOVED_AT_ONCE) >= COUNT // REMOVED_AT_ONCE
    assert known(shard) == before


def test_who_comes_back_while_the_old_filters_leave_gets_what_the_new_ones_match(shard: Turned) -> None:
    others, greedy = Others(shard), Connection(shard, "greedy")
    greedy.send(wire.subscribe(1, ASKED))
    turns_until_quiet(shard, others, greedy, FILTERS_A_TURN)
    greedy.send(wire.disconnect())
    others.live_through_a_turn()
    again = Connection(shard, "greedy")
    again.say(wire.subscribe(1, [(FILTERS[-1], 0), (FILTERS[0], 0)]))
    shard.settle()
    for _ in range(COUNT // REMOVED_AT_ONCE + 2):
        others.live_through_a_turn()
    others.publisher.say(wire.publish("many/999/x", b"new"), wire.publish("many/5/x", b"old"))
    assert payloads(again.take()) == [b"new"]
