"""Who published a traced message: its listener and version, where its connection can be told."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.auth.identity import Identity
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.conformance import wire
from tests.faults.shard import Client
from tests.tracing.world import Traced


@pytest.fixture
def shard() -> Iterator[Traced]:
    made = Traced(SimulatedFiles())
    made.trace()
    yield made
    made.end()


@pytest.mark.parametrize(("version", "told"), [(4, "3.1.1"), (5, "5")])
def test_a_client_without_a_name_is_told_with_its_version(shard: Traced, version: int, told: str) -> None:
    Client(shard, "p", version).say(wire.publish("t", b"x", version=version))
    (publish,) = shard.named("publish")
    assert publish.attributes["network.protocol.version"] == told


@pytest.mark.parametrize("qos", [0, 1])
def test_of_two_owners_clients_with_one_client_id_the_one_that_waits_is_found(shard: Traced, qos: int) -> None:
    """Of QoS 0 nothing but the client id is known: nobody waits."""
    broker: Any = shard.parts.clients.broker
    for user in ("anna", "bert"):
        policy = ListenerPolicy(name=f"of {user}", mount_point=f"{user}/")
        welcome = type(broker).welcome
        broker.welcome = lambda transport, policy=policy, welcome=welcome: welcome(broker, transport, policy)
        client = Client(shard, "p", 5, username=user)
        identity = Identity(user)
        assert identity.user == user
        client.say(wire.publish(f"{user}/t", b"x", qos, 1))
    found = [span.attributes.get("rumq.listener") for span in shard.named("publish")]
    assert found == (["of anna", "of bert"] if qos else [None, None])
    assert {span.attributes["messaging.client.id"] for span in shard.named("publish")} == {"p"}
