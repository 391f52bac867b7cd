"""The broker as one connection sees it: each call reaches the part that answers it."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.auth.rules import parse
from rumq.session.connection.broker_port import BrokerPort
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.session.flow_control.limits import Limits
from rumq.session.handshake.handshake import Handshake
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.turn.broker import Broker, ClientRecords, Gates
from rumq.shards.turn.read_gate import ReadGate
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class World:
    """A broker over parts that only note calls. entered: connections that have not logged in"""

    def __init__(self, shard: Shard, *, confirms: bool | None = None) -> None:
        """confirms: what the other shards answer; None: there are none"""
        self.entered: list[object] = []
        self.is_elsewhere = False
        self.confirmed: list[tuple[list[tuple[str, str]], bool]] = []
        self.totals = ShardTotals()

        def part(*names: str, **calls: Any) -> Any:
            return SimpleNamespace(**{name: f"the part's {name}" for name in names}, **calls)

        def confirm(asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool) -> bool:
            self.confirmed.append((asked, publishers))
            return bool(confirms)

        logins = part(
            "check", "delay_refusal", "has_room", "logged_in", "may_buffer", "set_waiting", "assigned_client_id",
            "login_refusal",
            hand_over=lambda *args: self.is_elsewhere, enter=self.entered.append,
        )  # fmt: skip
        gate = part(
            "topics", "backpressure", "pause_publisher", "add_topic", "refuse_topic", "match_topic", "publisher_number",
            "refuse_publish", "change_filters",
        )  # fmt: skip
        records = ClientRecords(
            shard.parts.broker.registry, JournalRecorder(), 4, KeepAliveMonitor(), DropCounters(), self.totals
        )
        self.is_newest = True
        self.broker = Broker(
            shard.parts.turn, records, logins,
            Gates(gate, ReadGate(lambda: self.is_newest, shard.parts.timers), shard.parts.broker.undecided),
            part("promise", "promise_messages"), part("go_on"),
            None if confirms is None else part(confirm_subscriptions=confirm), Limits(connect_seconds_max=5),
        )  # fmt: skip


def test_it_has_everything_that_a_connection_asks_for(shard: Shard) -> None:
    """`BrokerPort` is checked by type; a name that is put together at run time is not."""
    names = {
        name for each in BrokerPort.__mro__ for name in (*vars(each), *getattr(each, "__annotations__", {}))
    }
    missing = [
        name for name in names if not name.startswith("_") and not hasattr(shard.parts.broker, name)
    ]  # fmt: skip
    assert len(names) > 30 and missing == []


def test_each_call_is_that_of_its_part(shard: Shard) -> None:
    broker = World(shard).broker
    for name in (
        "check",
        "has_room",
        "may_buffer",
        "topics",
        "refuse_publish",
        "promise",
        "promise_messages",
    ):
        assert getattr(broker, name) == f"the part's {name}"
    assert broker.send_again == "the part's go_on"  # type: ignore[comparison-overlap]
    turn = shard.parts.turn
    assert broker.clock is turn.clock and broker.commands is turn.commands and broker.batches is turn.batches


def test_a_new_connection_is_counted_and_has_so_long_for_its_connect(shard: Shard) -> None:
    world = World(shard)
    transport = SimpleNamespace(peer="10.0.0.1:7")
    handshake = world.broker.welcome(transport)
    assert isinstance(handshake, Handshake) and world.entered == [transport]
    assert (world.broker.welcomed, world.totals.sockets) == (1, 1)
    assert handshake.timer is not None and handshake.timer.at == shard.monotonic + 5


def test_a_connection_that_is_handed_over_is_counted_where_it_goes(shard: Shard) -> None:
    world = World(shard)
    client: Any = world.broker.welcome(SimpleNamespace(peer="10.0.0.1:7")).client
    assert not world.broker.hand_over(client, "c", b"") and world.totals.sockets == 1
    world.is_elsewhere = True
    assert world.broker.hand_over(client, "c", b"") and world.totals.sockets == 0


ASKED = [("$share/g/t", "t")]


def test_with_one_shard_every_subscription_is_confirmed(shard: Shard) -> None:
    assert World(shard).broker.confirm(ASKED, lambda: None)


@pytest.mark.parametrize("confirms", [True, False])
def test_with_several_the_others_confirm_it(shard: Shard, confirms: bool) -> None:
    world = World(shard, confirms=confirms)
    assert world.broker.confirm(ASKED, lambda: None, publishers=True) is confirms
    assert world.confirmed == [(ASKED, True)]


def test_r15_a_subscription_waits_while_another_leader_may_have_newer_retained_messages(shard: Shard) -> None:
    world, called = World(shard, confirms=True), []
    world.is_newest = False
    assert not world.broker.confirm(ASKED, lambda: called.append(1))
    shard.parts.timers.run_due(lambda task, call: call())
    assert not called and not world.confirmed
    world.is_newest = True
    shard.parts.clock.monotonic += 1.0
    shard.parts.timers.run_due(lambda task, call: call())
    shard.parts.timers.run_next_turn(lambda task, call: call())
    assert called and world.confirmed == [(ASKED, False)]


RULES = '[[rule]]\nallow = ["subscribe", "publish"]\ntopics = [{}]\n'


def test_clients_that_are_here_are_held_to_rules_that_have_changed(shard: Shard) -> None:
    policy = ListenerPolicy(rules=parse(RULES.format('"a", "b"'), "rules"))
    welcome = shard.parts.broker.welcome
    shard.parts.broker.welcome = lambda transport: welcome(transport, policy)  # type: ignore[method-assign, assignment, misc]
    reader, publisher = Client(shard, "r", 5), Client(shard, "p", 5)
    reader.say(wire.subscribe(1, [("a", 0), ("b", 0)]))
    reader.take()

    def heard() -> list[bytes]:
        publisher.say(wire.publish("a", b"to a"), wire.publish("b", b"to b"))
        return [packet.payload for packet in reader.take() if packet.kind is Kind.PUBLISH]

    assert heard() == [b"to a", b"to b"]
    policy.rules = parse(RULES.format('"b"'), "rules")
    assert heard() == [b"to a", b"to b"], "rules are read again when somebody says so"
    shard.parts.broker.permit_again()
    shard.settle()
    assert heard() == [b"to b"]


def test_what_was_published_before_rules_changed_is_still_received(shard: Shard) -> None:
    policy = ListenerPolicy(rules=parse(RULES.format('"a"'), "rules"))
    welcome = shard.parts.broker.welcome
    shard.parts.broker.welcome = lambda transport: welcome(transport, policy)  # type: ignore[method-assign, assignment, misc]
    reader, publisher = Client(shard, "r", 5), Client(shard, "p", 5)
    reader.say(wire.subscribe(1, [("a", 0)]))
    reader.take()
    packet = wire.publish("a", b"before")
    publisher.link.receive(packet, 0, len(packet))  # in the same turn
    policy.rules = parse(RULES.format('"b"'), "rules")
    shard.parts.broker.permit_again()
    shard.settle()
    assert [packet.payload for packet in reader.take()] == [b"before"]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("is_resumed", [False, True])
def test_retained_messages_that_wait_for_credit_are_held_to_rules_that_have_changed(
    shard: Shard, qos: int, is_resumed: bool
) -> None:
    """They were found and built under the rules before; `b` may still be had, and nothing comes twice."""
    policy = ListenerPolicy(
        rules=parse(RULES.format('"#"').replace('"publish"', '"publish", "retain"'), "rules")
    )
    welcome = shard.parts.broker.welcome
    shard.parts.broker.welcome = lambda transport: welcome(transport, policy)  # type: ignore[method-assign, assignment, misc]
    one_at_a_time = [(Prop.RECEIVE_MAXIMUM, 1), (Prop.SESSION_EXPIRY, 100)]
    reader, publisher = Client(shard, "r", 5, properties=one_at_a_time), Client(shard, "p", 5)
    if is_resumed:
        reader = Client(shard, "r", 5, clean=False, properties=one_at_a_time)
    for number, topic in enumerate(("a/1", "a/2", "a/3", "b"), 1):
        publisher.say(
            wire.publish(topic, topic.encode(), 2, number, retain=True), wire.ack(Kind.PUBREL, number)
        )
    reader.say(wire.subscribe(1, [("#", qos)]))
    heard = [packet for packet in reader.take() if packet.kind is Kind.PUBLISH]
    assert [packet.payload for packet in heard] == [b"a/1"]
    policy.rules = parse(RULES.format('"b"'), "rules")
    shard.parts.broker.permit_again()
    shard.settle()
    for _ in range(4):
        (packet_id,) = {packet.packet_id for packet in heard[-1:]}
        if qos == 1:
            reader.say(wire.ack(Kind.PUBACK, packet_id))
        else:
            reader.say(wire.ack(Kind.PUBREC, packet_id), wire.ack(Kind.PUBCOMP, packet_id))
        heard += [packet for packet in reader.take() if packet.kind is Kind.PUBLISH]
        if heard[-1].payload == b"b":
            break
    assert [packet.payload for packet in heard] == [b"a/1", b"b"]
