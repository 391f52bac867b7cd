"""Clients that the edge of another node relays are taken as those that are handed over on this one."""

from types import SimpleNamespace
from typing import Any

import pytest

from rumq.cluster.links.greeting import GATEWAY, Greeting
from rumq.net.connection_handover import CLIENT, KNOWN
from rumq.process.shard.cluster_connections import maybe_listener, missing_listener, relayed_clients
from rumq.session.flow_control.listener_policy import ListenerPolicy


@pytest.mark.parametrize(("handover", "kind"), [("", CLIENT), (KNOWN, KNOWN)])
def test_a_relayed_client_comes_with_its_bytes_and_its_listener(handover: str, kind: str) -> None:
    taken: list[tuple[Any, ...]] = []
    said: list[str] = []
    greeting = Greeting("client", "c", "n2#2", 0, 1, listener=1, handover=handover, peer="10.0.0.9:5")
    caller: Any = SimpleNamespace(
        greeting=greeting, sock="socket", raw=b"state", rest=b"CONNECT", answer_taken=lambda: said.append("taken"),
        refuse=said.append,
    )  # fmt: skip
    policies = {0: ListenerPolicy(0), 1: ListenerPolicy(1)}
    take = relayed_clients(lambda *all_: taken.append(all_), policies)
    take(caller)
    assert said == ["taken"] and taken == [(kind, "socket", "10.0.0.9:5", b"stateCONNECT", 1)]
    take(SimpleNamespace(**vars(caller) | {"greeting": Greeting("client", "c", "n2#2", 0, 1, listener=2)}))  # type: ignore[arg-type]
    assert (
        said[1:] == ["there is no listener number 2 on this node: all nodes of a cluster have the same"]
        and len(taken) == 1
    )


def test_a_client_of_a_gateway_goes_to_the_gateways_policy_and_no_other_client_does() -> None:
    """Who comes by the gateway's socket may be any user: another node's listener of that number must not lead there."""
    policies = {0: ListenerPolicy(0), 1: ListenerPolicy(1, is_gateway=True)}
    assert maybe_listener(GATEWAY, policies) == 1 and maybe_listener(0, policies) == 0
    assert maybe_listener(1, policies) is None
    assert maybe_listener(GATEWAY, {0: policies[0]}) is None and "gateway.port" in missing_listener(GATEWAY)
