"""When messages go out: after CONNACK, behind those in flight, as room and credit return. MQTT 5.0, 4.4 and 4.9."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router import commands as c
from rumq.mqtt import packets as p
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connect, connected
from tests.session.flow_control.test_delivery_window import blob_of

LASTING: Any = {"session_expiry_interval": 3600}
AWAITS_PUBACK, AWAITS_PUBREC, AWAITS_PUBCOMP = 1, 2, 3
CODE = 64  # of reader 1, partition 0

repeatable = settings(derandomize=True, deadline=None)


def kinds(wire: Wire) -> list[Kind]:
    return [each.kind for each in wire.hears()]


def window_of(*states: int, limit: int = 10) -> Window:
    """Messages 1, 2, ... in flight, of lsns 50, 51, ..."""
    window = Window(limit)
    lsns = b"".join((50 + at).to_bytes(8, "little") for at in range(len(states)))
    window.put(0, bytes(states), lsns, CODE.to_bytes(4, "little") * len(states))
    return window


def back(broker: Broker, *states: int, version: int = 5, **properties: int) -> Wire:
    """A client that comes back to its session, which had messages in flight when it left. Nothing is heard yet."""
    fields: Any = {"version": version, "clean_start": False}
    if version == 5:
        fields["properties"] = LASTING | properties
    left = connected(broker, **fields)
    left.link.flow.window = window_of(*states) if states else None
    left.link.lost("gone")
    for noted in (broker.commands, broker.refreshed, broker.redelivered):
        noted.clear()
    wire = Wire(broker, version=version)
    wire.say(connect(**fields))
    return wire


def attached(broker: Broker) -> list[Any]:
    return [each for each in broker.commands if isinstance(each, c.Attach)]


# After CONNACK, behind what was in flight


@pytest.mark.parametrize("version", [4, 5])
def test_what_was_in_flight_goes_out_before_anything_else(version: int) -> None:
    """MQTT-4.4.0-1 and 4.6: PUBREL at once, PUBLISH when it has been read again; new messages behind them."""
    broker = Broker()
    wire = back(broker, AWAITS_PUBACK, AWAITS_PUBCOMP, AWAITS_PUBREC, version=version)
    assert kinds(wire) == [Kind.CONNACK, Kind.PUBREL]
    deliveries = wire.link.deliveries
    assert list(deliveries.unsent) == [(1, CODE, 50), (3, CODE, 52)]
    assert set(broker.redelivered) == {deliveries} and not attached(broker)


@pytest.mark.parametrize("states", [(), (AWAITS_PUBCOMP,)], ids=["nothing", "PUBREL alone"])
def test_where_no_message_is_to_be_sent_again_new_ones_follow(states: tuple[int, ...]) -> None:
    broker = Broker()
    wire = back(broker, *states)
    [attach] = attached(broker)
    assert attach.subscriber is wire.link.session.subscriber and attach.sink is wire.link.flow
    assert not broker.redelivered


@pytest.mark.parametrize("states", [(), (AWAITS_PUBACK, AWAITS_PUBCOMP)], ids=["nothing in flight", "in flight"])
def test_no_message_overtakes_a_connack_that_waits_for_the_journal(states: tuple[int, ...]) -> None:
    """MQTT-3.2.0-1: CONNACK is the first packet."""
    broker = Broker()
    wire = Wire(broker)
    left = connected(broker, properties=LASTING)
    left.link.flow.window = window_of(*states) if states else None
    left.link.lost("gone")
    broker.commands.clear()
    broker.holds = True
    wire.say(connect(clean_start=False, properties=LASTING))
    assert wire.link.deliveries.connack_pending
    assert not wire.hears() and not attached(broker) and not broker.redelivered
    broker.commit()
    assert not wire.link.deliveries.connack_pending
    assert kinds(wire) == ([Kind.CONNACK, Kind.PUBREL] if states else [Kind.CONNACK])
    assert (len(attached(broker)), len(broker.redelivered)) == ((0, 1) if states else (1, 0))


def test_a_client_that_goes_before_its_connack_is_out_gets_nothing() -> None:
    broker = Broker()
    broker.holds = True
    wire = Wire(broker)
    wire.say(connect(properties=LASTING))
    wire.link.lost("gone")
    broker.commit()
    assert not wire.hears() and not attached(broker)


def test_each_acknowledgement_lets_more_of_what_was_in_flight_go_out() -> None:
    """The receive maximum holds for redelivery too: 4.9."""
    broker = Broker()
    wire = back(broker, AWAITS_PUBACK, AWAITS_PUBACK, receive_maximum=1)
    deliveries = wire.link.deliveries
    broker.redelivered.clear()
    wire.say(p.Puback(1))
    assert broker.redelivered == [deliveries]
    deliveries.unsent.clear()
    wire.say(p.Puback(2))
    assert broker.redelivered == [deliveries], "nothing is left to be sent again"


# The window of a session


def test_the_window_is_as_wide_as_this_connection_allows() -> None:
    """MQTT 5.0, 3.1.2.11.3: the receive maximum is of a connection, the messages in flight are of the session."""
    broker = Broker(Limits(inflight_max=100))
    wire = back(broker, AWAITS_PUBACK, AWAITS_PUBACK, AWAITS_PUBACK, receive_maximum=2)
    window = wire.link.flow.window
    assert wire.link.wire.window is window and (window.limit, window.in_flight, window.credit()) == (2, 3, 0)
    wire.link.lost("gone")
    wire = Wire(broker)
    wire.say(connect(clean_start=False, properties=LASTING))
    assert wire.link.flow.window is window and (window.limit, window.credit()) == (100, 97)


def test_a_session_has_a_window_from_its_first_message_of_qos_1_or_2_on() -> None:
    """Most sessions never need one."""
    broker = Broker(Limits(inflight_max=7))
    wire = connected(broker)
    link = wire.link
    assert link.flow.window is link.wire.window is link.session.window is None
    link.flow.number(blob_of([1, 2]), 0, 2, CODE)
    window = link.wire.window
    assert window is link.flow.window is link.session.window and window.limit == 7
    assert kinds(wire) == [Kind.PUBLISH] * 2


@pytest.mark.parametrize("lasts", [False, True])
def test_the_journal_has_what_a_session_that_lasts_was_sent(lasts: bool) -> None:
    broker = Broker()
    wire = connected(broker, properties=LASTING if lasts else {})
    broker.journal.entries.clear()
    wire.link.flow.number(blob_of([1]), 0, 1, CODE)
    assert bool(broker.journal.entries) is lasts and kinds(wire) == [Kind.PUBLISH]


# As credit returns


def filled(broker: Broker, limit: int) -> Wire:
    """A client whose in-flight window is full, and for whom more waits."""
    wire = connected(broker, properties={"receive_maximum": limit})
    wire.link.flow.number(blob_of([1] * (limit + 1)), 0, limit + 1, CODE)
    assert wire.link.flow.window_full and len(wire.hears()) == limit
    broker.refreshed.clear()
    return wire


@pytest.mark.parametrize(("limit", "credit"), [(1, 1), (2, 1), (3, 1), (7, 1), (8, 2), (20, 5), (256, 64), (1000, 64)])
def test_deliveries_go_on_once_a_part_of_the_window_is_free(limit: int, credit: int) -> None:
    """A batch for each acknowledgement would be a batch of one message."""
    broker = Broker()
    wire = filled(broker, limit)
    for packet_id in range(1, credit):
        wire.say(p.Puback(packet_id))
    assert not broker.refreshed and wire.link.flow.window_full
    wire.say(p.Puback(credit))
    assert broker.refreshed == [wire.link] and not wire.link.flow.window_full


@repeatable
@given(st.integers(1, 300), st.randoms(use_true_random=False))
def test_a_client_that_acknowledges_everything_is_never_left_waiting(limit: int, random: Any) -> None:
    broker = Broker()
    wire = filled(broker, limit)
    order = list(range(1, limit + 1))
    random.shuffle(order)
    for packet_id in order:
        wire.say(p.Puback(packet_id, random.choice([Reason.SUCCESS, Reason.QUOTA_EXCEEDED])))
    assert broker.refreshed == [wire.link] and not wire.link.flow.window_full


def test_a_window_that_became_narrower_goes_on_when_it_is_empty() -> None:
    """With more in flight than its limit there is no credit to wait for."""
    broker = Broker()
    wire = back(broker, AWAITS_PUBACK, AWAITS_PUBACK, AWAITS_PUBACK, receive_maximum=1)
    link = wire.link
    link.deliveries.unsent.clear()
    link.flow.window_full = True
    broker.refreshed.clear()
    for packet_id in (1, 2):
        wire.say(p.Puback(packet_id))
        assert not broker.refreshed
    wire.say(p.Puback(3))
    assert broker.refreshed == [link]


def test_who_waits_for_no_credit_is_not_woken_by_acknowledgements() -> None:
    broker = Broker()
    wire = connected(broker)
    wire.link.flow.number(blob_of([1]), 0, 1, CODE)
    broker.refreshed.clear()
    wire.say(p.Puback(1))
    assert not broker.refreshed


# As room returns


class Pieces:
    """Retained messages: a number of each piece, 0 for none in this turn."""

    def __init__(self, *counts: int) -> None:
        self._counts = list(counts)
        self.over = False

    def piece(self) -> tuple[Any, int, int] | None:
        if not self._counts:
            self.over = True
            return None
        count = self._counts[0]
        if not count:
            del self._counts[0]
            return None
        return blob_of([0] * count), 0, CODE

    def taken(self, stop: int) -> None:
        assert stop == self._counts.pop(0)


def client() -> tuple[Broker, Wire]:
    broker = Broker()
    wire = connected(broker)
    broker.commands.clear()
    return broker, wire


def test_room_in_the_outbox_has_the_router_read_on() -> None:
    broker, wire = client()
    wire.link.drained()
    [ready] = broker.commands
    assert isinstance(ready, c.Ready) and ready.subscriber is wire.link.session.subscriber


def test_retained_messages_go_out_before_what_came_later() -> None:
    """MQTT 5.0, 3.3.1.3; what the log has had since follows them."""
    broker, wire = client()
    link = wire.link
    wire.room = 0
    link.flow.offer_retained(Pieces(2, 0, 1))
    link.drained()
    assert not broker.commands and not wire.hears() and not broker.continued, "there is no room yet"
    wire.room = 1000
    link.drained()
    assert len(wire.hears()) == 2 and broker.continued == [wire] and not broker.commands, "more has to be looked up"
    link.drained()
    assert len(wire.hears()) == 1 and len(broker.commands) == 1 and broker.continued == [wire]


# Its end


def test_a_client_that_has_gone_gets_nothing_more() -> None:
    broker, wire = client()
    deliveries = wire.link.deliveries
    wire.link.end(with_will=False)
    broker.commands.clear()
    broker.refreshed.clear()
    deliveries.go_on()
    deliveries.released()
    deliveries.flow.window, deliveries.flow.window_full = Window(10), True
    deliveries.acknowledged()
    assert not broker.commands and not broker.refreshed and not deliveries.flow.is_open


def test_an_answer_that_went_out_lets_messages_follow() -> None:
    broker, wire = client()
    broker.refreshed.clear()
    wire.link.deliveries.released()
    assert broker.refreshed == [wire.link] and not attached(broker)
