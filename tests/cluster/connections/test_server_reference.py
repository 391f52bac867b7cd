"""Where a client is sent: to a node that lives, stays, and serves clients."""

import msgspec

from rumq.cluster.connections.server_reference import maybe_reference
from rumq.cluster.control.records import NodeRecord, View
from tests.cluster.edge.world import node


def known(name: str, *, leaves: bool = False, mqtt: str = "") -> NodeRecord:
    return msgspec.structs.replace(node(f"{name}#1", 7000), leaves=leaves, mqtt=[mqtt] if mqtt else [])


def view(*nodes: NodeRecord) -> View:
    return View(cluster="c", node="n1#1", replicas=3, nodes=list(nodes), shards=[], is_current=True)


def test_it_is_another_node_that_stays() -> None:
    seen = view(known("n1", mqtt="a:1"), known("n2", leaves=True, mqtt="b:1"), known("n3", mqtt="c:1"), known("n4"))
    assert {maybe_reference(seen, "n1#1", f"c{number}") for number in range(9)} == {"c:1"}


def test_clients_are_spread_and_each_is_sent_to_the_same_one() -> None:
    seen = view(*(known(f"n{number}", mqtt=f"h{number}:1") for number in (1, 2, 3)))
    found = [maybe_reference(seen, "n1#1", f"c{number}") for number in range(40)]
    assert {*found} == {"h2:1", "h3:1"}
    assert found == [maybe_reference(seen, "n1#1", f"c{number}") for number in range(40)]


def test_there_may_be_none() -> None:
    assert maybe_reference(None, "n1#1") is None
    assert maybe_reference(view(known("n1", mqtt="a:1")), "n1#1") is None
