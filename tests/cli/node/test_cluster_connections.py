"""Clients that the edge of another node relays are taken as those that are handed over on this one."""

from types import SimpleNamespace
from typing import Any

import pytest

from rumq.cli.node.cluster_connections import relayed_clients
from rumq.cluster.links.greeting import Greeting
from rumq.net.connection_handover import CLIENT, KNOWN


@pytest.mark.parametrize(("handover", "kind"), [("", CLIENT), (KNOWN, KNOWN)])
def test_a_relayed_client_comes_with_its_bytes_and_its_listener(handover: str, kind: str) -> None:
    taken: list[tuple[Any, ...]] = []
    said: list[str] = []
    greeting = Greeting("client", "c", "n2#2", 0, 1, listener=1, handover=handover, peer="10.0.0.9:5")
    caller: Any = SimpleNamespace(
        greeting=greeting, sock="socket", raw=b"state", rest=b"CONNECT", answer_taken=lambda: said.append("taken"),
        refuse=said.append,
    )  # fmt: skip
    take = relayed_clients(lambda *all_: taken.append(all_), {0, 1})
    take(caller)
    assert said == ["taken"] and taken == [(kind, "socket", "10.0.0.9:5", b"stateCONNECT", 1)]
    take(SimpleNamespace(**vars(caller) | {"greeting": Greeting("client", "c", "n2#2", 0, 1, listener=2)}))  # type: ignore[arg-type]
    assert said[1:] == ["there is no listener number 2 on this node"] and len(taken) == 1
