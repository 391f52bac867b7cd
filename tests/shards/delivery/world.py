"""Clients of a whole shard over a simulated disk, for tests of its delivery."""

from typing import Any

from rumq.auth.rules import parse
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.state.session import Session
from rumq.session.state.session_owner import client_id_of
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet, Prop
from tests.faults.shard import Client, Shard

LASTING: dict[str, Any] = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 1_000_000)]}


def subscribed(
    shard: Shard, client_id: str, *filters: str, options: int = 0, version: int = 5, **connect: Any
) -> Client:
    """options: of each subscription, its QoS"""
    client = Client(shard, client_id, version, **connect)
    client.say(wire.subscribe(1, [(each, options) for each in filters], version=version))
    (suback,) = client.take()
    assert suback.kind is Kind.SUBACK
    return client


def messages(client: Client) -> list[Packet]:
    """That came since the last call."""
    return [packet for packet in client.take() if packet.kind is Kind.PUBLISH]


def payloads(client: Client) -> list[bytes]:
    return [packet.payload for packet in messages(client)]


def drain(client: Client) -> None:
    """The client's socket takes everything again."""
    client.room = 1 << 20
    client.shard.parts.turn.drained(client)
    client.shard.settle()


def session_of(shard: Shard, client_id: str) -> Session:
    return next(s for s in shard.parts.clients.broker.registry.sessions.values() if s.client_id == client_id)


def counted(shard: Shard) -> dict[tuple[str, str, str], int]:
    """(reason, client id, topic) -> records that were not delivered."""
    rows = shard.parts.delivery.drop_counters.rows()
    return {(row.why, client_id_of(row.client_id), row.topic): row.records for row in rows}


def ruled(shard: Shard, *topics: str) -> ListenerPolicy:
    """Clients that come from now on may publish and subscribe to these alone."""
    policy = ListenerPolicy()
    permit(policy, *topics)
    broker: Any = shard.parts.clients.broker
    welcome = type(broker).welcome
    broker.welcome = lambda transport: welcome(broker, transport, policy)
    return policy


def permit(policy: ListenerPolicy, *topics: str) -> None:
    names = ", ".join(f'"{each}"' for each in topics)
    allowed = '["subscribe", "publish", "will", "retain", "replay"]'
    policy.rules = parse(f"[[rule]]\nallow = {allowed}\ntopics = [{names}]\n", "rules")
