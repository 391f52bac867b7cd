"""What is known of one client, and a fault of one client that stays its own."""

from collections.abc import Callable

import pytest

from rumq.auth.identity import Identity
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import Client, run_confined
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connected


def client() -> Client:
    found: Client = Wire(Broker()).link.client
    return found


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("192.0.2.1:7", "192.0.2.1"),
        ("[2001:db8::1]:7", "[2001:db8::1]"),
        ("unix", "unix"),  # a Unix socket has no port
        ("", ""),
    ],
)
def test_its_address_has_no_port(peer: str, address: str) -> None:
    """Delays and quotas are of an address: with the port every connection would be another one."""
    one = client()
    one.transport.peer = peer
    assert one.address == address


@pytest.mark.parametrize(
    ("user", "client_id", "name"), [("anna", "c", "anna"), ("", "c", "c"), ("anna", "", "anna"), ("", "", "")]
)
def test_before_its_login_it_has_the_name_that_it_claims(user: str, client_id: str, name: str) -> None:
    one = client()
    one.claimed_user, one.claimed_client_id = user, client_id
    assert one.claimed_name == name and one.user is None, "a claim is no user"


def test_its_client_id_is_that_of_its_session_once_it_has_one() -> None:
    one = client()
    assert one.client_id is None
    one.claimed_client_id = "claimed"
    assert one.client_id == "claimed"
    broker = Broker()
    assigned = connected(broker, client_id="").link.client
    assert assigned.claimed_client_id == "" and assigned.client_id == "rumq-1"


def test_its_user_is_the_one_that_was_authenticated() -> None:
    one = client()
    one.claimed_user, one.identity = "admin", Identity("anna")
    assert one.user == "anna"


@pytest.mark.parametrize("own", [None, Limits(maximum_qos=0)], ids=["of the broker", "of its listener"])
def test_its_limits_are_those_of_its_listener_where_it_has_some(own: Limits | None) -> None:
    broker = Broker(Limits(maximum_qos=1))
    one = Wire(broker, ListenerPolicy(limits=own)).link.client
    assert one.limits is (own or broker.limits)


def call_of(fault: Exception | None, called: list[None]) -> Callable[[], None]:
    def call() -> None:
        called.append(None)
        if fault is not None:
            raise fault

    return call


@pytest.mark.parametrize("fault", [None, MqttFault("x", Reason.PROTOCOL_ERROR), KeyError("x")], ids=repr)
def test_what_waited_for_a_client_that_has_gone_is_not_done(fault: Exception | None) -> None:
    broker, called = Broker(), list[None]()
    wire = connected(broker)
    link = wire.link
    link.lost("gone")
    told = len(broker.events)
    run_confined(link, call_of(fault, called))
    assert not called and not broker.crashes and len(broker.events) == told


def test_a_fault_of_the_client_s_in_it_is_answered() -> None:
    broker, called = Broker(), list[None]()
    wire = connected(broker)
    run_confined(wire.link, call_of(MqttFault("what it did", Reason.TOPIC_FILTER_INVALID), called))
    assert called and wire.closed and not broker.crashes
    assert [(each.kind, each.code) for each in wire.hears()] == [(Kind.DISCONNECT, Reason.TOPIC_FILTER_INVALID)]
    assert broker.told("client.refused")[0]["why"] == "what it did"


def test_a_fault_of_ours_ends_this_client_and_the_turn_goes_on() -> None:
    broker, called = Broker(), list[None]()
    one, other = connected(broker, client_id="one"), connected(broker, client_id="other")
    run_confined(one.link, call_of(KeyError("ours"), called))
    assert called and broker.crashes == [one] and one.closed and not other.closed


def test_a_call_without_fault_leaves_the_client_alone() -> None:
    broker, called = Broker(), list[None]()
    wire = connected(broker)
    run_confined(wire.link, call_of(None, called))
    assert called and not wire.closed and not wire.hears()
