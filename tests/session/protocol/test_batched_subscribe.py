"""A packet of many filters is served a piece in each turn, and answered as if it were served at once.

MQTT 5.0, 3.8 to 3.11."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router import commands as c
from rumq.auth.rules import parse
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import run_confined
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.protocol import control_packets
from rumq.session.protocol.batched_subscribe import SHORT_BYTES
from rumq.session.protocol.subscribe import CHECKS_A_TURN, FILTERS_A_TURN
from tests.conformance import wire as by_hand
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connected

repeatable = settings(derandomize=True, deadline=None)

RULES = parse('[[rule]]\nallow = ["subscribe"]\ntopics = ["plant/#", "a/#", "+"]\n', "rules.toml")


def names(count: int) -> list[str]:
    return [f"plant/{number:06}" for number in range(count)]


MACHINES = [f"plants of one company/plant {number:06}/machines" for number in range(100)]  # few are not served at once


def subscribing(filters: list[str], **properties: Any) -> p.Subscribe:
    return p.Subscribe(1, tuple(p.SubscriptionRequest(each, 1) for each in filters), properties)  # type: ignore[arg-type]


def next_turn(broker: Broker) -> None:
    calls, broker.next_turns = broker.next_turns, []
    for call in calls:
        call()


def turns(broker: Broker) -> list[int]:
    """Go on until nothing is left to do; returns how many commands came of each turn."""
    made = []
    while broker.next_turns:
        before = len(broker.commands)
        next_turn(broker)
        made.append(len(broker.commands) - before)
    return made


def client(broker: Broker | None = None, policy: ListenerPolicy | None = None, version: int = 5) -> tuple[Broker, Wire]:
    broker = broker or Broker()
    wire = connected(broker, policy=policy, version=version)
    broker.commands.clear()
    return broker, wire


# In pieces


@pytest.mark.parametrize("count", [CHECKS_A_TURN, CHECKS_A_TURN + 1, 5 * CHECKS_A_TURN + 7])
@pytest.mark.parametrize("kind", [Kind.SUBSCRIBE, Kind.UNSUBSCRIBE])
def test_a_turn_serves_a_bounded_number_of_filters(kind: Kind, count: int) -> None:
    broker, wire = client()
    filters = names(count)
    wire.say(subscribing(filters) if kind == Kind.SUBSCRIBE else p.Unsubscribe(1, tuple(filters)))
    assert not broker.commands and not wire.hears()
    checks, pieces = -(-count // CHECKS_A_TURN), -(-count // FILTERS_A_TURN)
    made = turns(broker)
    assert made[:checks] == [0] * checks, "all of it is looked at first"
    assert len(made) == checks + pieces and max(made) == FILTERS_A_TURN and sum(made) == count


def test_the_answer_comes_with_the_last_piece_and_what_the_client_sent_behind_it_waits() -> None:
    """Answers are in the order of the requests: 3.1.1, 4.6; MQTT 5.0, 4.6."""
    broker, wire = client()
    request = encode(subscribing(names(100)), 5)
    assert wire.say(request, p.Pingreq()) == len(request)
    while broker.next_turns:
        assert wire.paused and not wire.hears()
        next_turn(broker)
    [answer] = wire.hears()
    assert answer.kind == Kind.SUBACK and answer.codes == [1] * 100 and not wire.paused
    wire.say(p.Pingreq())
    assert [each.kind for each in wire.hears()] == [Kind.PINGRESP]


@pytest.mark.parametrize("kind", [Kind.SUBSCRIBE, Kind.UNSUBSCRIBE])
def test_a_client_is_not_silent_while_its_packet_is_served(kind: Kind) -> None:
    """MQTT-3.1.2-22: what it sends meanwhile is not read, its PINGREQ either, however long other clients' turns are."""
    broker, wire = client()
    wire.say(subscribing(names(100)) if kind == Kind.SUBSCRIBE else p.Unsubscribe(1, tuple(names(100))))
    while broker.next_turns:
        broker.clock.monotonic += wire.link.client.keep_alive
        broker.keep_alive_monitor.check(broker)
        next_turn(broker)
    assert not wire.closed
    broker.clock.monotonic += 1.5 * wire.link.client.keep_alive
    broker.keep_alive_monitor.check(broker)
    assert wire.closed, "and then it counts"


# As if at once

LEVEL = st.sampled_from(["plant", "a", "b", "+", "#", "$log/earliest", "$log/7", "$log/never", "$share/g"])
FILTER = st.lists(LEVEL, min_size=1, max_size=3).map("/".join)
FILTERS = st.lists(FILTER, min_size=1, max_size=80)
LONG = "x" * SHORT_BYTES  # one filter that makes the packet a long one


def outcome(broker: Broker, wire: Wire, packet: p.Subscribe | p.Unsubscribe, *, at_once: bool) -> object:
    """What comes of a packet: answers, commands, the session's filters, and whether the connection has ended."""
    if at_once:
        link = wire.link
        run_confined(link, partial(control_packets.dispatch, link, packet))
    else:
        wire.say(packet)
        turns(broker)
    told = [(each.kind, each.packet_id, tuple(each.codes), each.code) for each in wire.hears()]
    return told, [shape(each) for each in broker.commands], wire.link.session.asked.items(), wire.closed


def shape(command: Any) -> tuple[object, ...]:
    fields = ("asked", "subscription", "start", "retained")
    return (type(command), *(getattr(command, name, None) for name in fields))


@repeatable
@given(FILTERS, st.sampled_from([4, 5]), st.integers(0, 90), st.booleans())
def test_a_subscribe_comes_to_the_same(filters: list[str], version: int, most: int, rules: bool) -> None:
    packet, found = subscribing([*filters, LONG]), []
    for at_once in (True, False):
        limits = Limits(subscriptions_max=most)
        policy = ListenerPolicy(rules=RULES if rules else None)
        broker, wire = client(Broker(limits), policy, version)
        found.append(outcome(broker, wire, packet, at_once=at_once))
    assert found[0] == found[1]


@repeatable
@given(FILTERS, FILTERS, st.sampled_from([4, 5]))
def test_an_unsubscribe_comes_to_the_same(there: list[str], filters: list[str], version: int) -> None:
    packet, found = p.Unsubscribe(1, (*filters, LONG)), []
    for at_once in (True, False):
        broker, wire = client(version=version)
        for each in there:
            wire.link.session.own_filters().add(each)
        found.append(outcome(broker, wire, packet, at_once=at_once))
    assert found[0] == found[1]


def test_the_properties_of_the_packet_are_those_of_every_filter() -> None:
    broker, wire = client()
    from_earliest = [("rumq-from", "earliest"), ("rumq-publisher", "yes")]
    wire.say(subscribing(names(100), subscription_identifiers=[7], user_properties=from_earliest))
    turns(broker)
    assert len(broker.commands) == 100
    for command in broker.commands:
        assert isinstance(command, c.Replay) and command.start == "earliest"
        assert command.subscription.identifier == 7 and command.subscription.tells_publisher


# What ends it


@pytest.mark.parametrize("at", [0, 299], ids=["first", "last"])
@pytest.mark.parametrize(
    ("filter_bytes", "reason"), [(b"a/#/b", Reason.TOPIC_FILTER_INVALID), (b"a\xff", Reason.MALFORMED_PACKET)]
)
def test_a_malformed_filter_ends_the_connection_before_any_other_is_served(
    at: int, filter_bytes: bytes, reason: Reason
) -> None:
    broker, wire = client()
    filters: list[tuple[Any, int]] = [(each, 1) for each in names(300)]
    filters[at] = (filter_bytes, 1)
    wire.say(by_hand.subscribe(1, filters))
    turns(broker)
    assert wire.closed and [(each.kind, each.code) for each in wire.hears()] == [(Kind.DISCONNECT, reason)]
    assert not any(isinstance(each, c.AddSubscription) for each in broker.commands)


def test_an_unsubscribe_with_a_malformed_filter_takes_nothing_away() -> None:
    broker, wire = client()
    wire.link.session.own_filters().add("plant/000000")
    wire.say(by_hand.unsubscribe(1, [*names(300), b"a\xff"]))
    turns(broker)
    assert wire.closed and list(wire.link.session.asked) == ["plant/000000"]
    assert not any(isinstance(each, c.RemoveSubscription) for each in broker.commands)


@pytest.mark.parametrize("after", range(4))
def test_nothing_more_is_served_of_a_client_that_has_gone(after: int) -> None:
    broker, wire = client()
    wire.say(subscribing(names(100)))
    for _ in range(after):
        next_turn(broker)
    wire.link.lost("gone")
    served = len(broker.commands)
    assert sum(turns(broker)) == 0 and len(broker.commands) == served and not broker.crashes


# Other shards


def test_each_piece_waits_until_every_shard_sends_what_it_matches() -> None:
    broker, wire = client()
    broker.confirmations = []
    count = FILTERS_A_TURN + 3
    wire.say(subscribing(MACHINES[:count]))
    for before, granted in ((0, FILTERS_A_TURN), (FILTERS_A_TURN, count)):
        turns(broker)
        [confirmed] = broker.confirmations
        assert len(broker.commands) == before and wire.paused
        broker.confirmations.clear()
        confirmed()
        assert len(broker.commands) == granted
    turns(broker)
    assert [each.kind for each in wire.hears()] == [Kind.SUBACK] and not wire.paused


def test_a_confirmation_for_a_client_that_has_gone_grants_nothing() -> None:
    broker, wire = client()
    broker.confirmations = []
    wire.say(subscribing(names(100)))
    turns(broker)
    wire.link.lost("gone")
    broker.commands.clear()
    broker.confirmations[0]()
    assert not broker.commands and not wire.link.session.asked and not broker.crashes


class Asked(Broker):
    """asked: what the other shards were to confirm, and whether the names of publishers too"""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[list[tuple[str, str]], bool]] = []

    def confirm(self, asked: Any, then: Callable[[], None], *, publishers: bool = False) -> bool:
        self.asked.append((asked, publishers))
        return True


def test_other_shards_are_asked_for_one_piece_at_a_time() -> None:
    broker, wire = client(Asked())
    assert isinstance(broker, Asked)
    filters = MACHINES[: FILTERS_A_TURN + 3]
    wire.say(subscribing(filters, user_properties=[("rumq-publisher", "yes")]))
    turns(broker)
    pieces = [filters[:FILTERS_A_TURN], filters[FILTERS_A_TURN:]]
    assert broker.asked == [([(each, each) for each in piece], True) for piece in pieces]
