"""The first frame of each connection between nodes: who comes, to which shard, and what for.

Whoever takes a client or a link of the bus answers `Taken`; from then on the bytes are MQTT's or the bus's. A process
that is not what the greeting asks for answers `GreetingRefused` and closes the connection."""

from __future__ import annotations

import msgspec

FEATURE_LEVEL = 1  # of formats and messages between nodes; raised when all nodes know the next one
TO_A_STRANGER = "refused: the log of the node that refuses has the reason"  # who is of no cluster of ours learns no id
COPY = "copy"  # a kind, below
GATEWAY = -1  # in place of a listener's number: the client comes from that node's gateway


class Greeting(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """kind: "replica" (fencing, replication), "bus" (link between leaders), "client" (a relayed client), "ask"
    (orders), "admin" (a question of the admin interface, which is the raw bytes behind the greeting), "copy" (likewise,
    about the copy of the node: `rumq.cluster.node.copy_inquiries`) or "edge" (`rumq.cluster.links.client_moves`)

    cluster: its id; node: id of the sender's; shard: whom it is for; epoch: of the shard as the sender knows it
    sender: the shard that dials, on the bus; -1 otherwise
    listener, handover, peer: of a relayed client: the listener's number or `GATEWAY`; `CLIENT`, `KNOWN` or `MOVED`; its
    address. The raw bytes behind the greeting are the hand-over state, and the client's bytes follow the frame
    edge: of the edge's process, unique; relay: the client's number there. Empty: that edge moves no clients"""

    kind: str
    cluster: str
    node: str
    shard: int
    epoch: int
    sender: int = -1
    listener: int = 0
    handover: str = ""
    peer: str = ""
    level: int = FEATURE_LEVEL
    edge: str = ""
    relay: int = 0


class Taken(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The connection is served. A client that was not taken is still the dialler's: nothing of it was handled.

    epoch: of the leader that has taken it; the dialler's view may be older"""

    epoch: int = 0


class GreetingRefused(msgspec.Struct, frozen=True, tag="Refused", array_like=True):
    """Instead of an answer; the connection is closed behind it."""

    why: str


Answer = Taken | GreetingRefused
