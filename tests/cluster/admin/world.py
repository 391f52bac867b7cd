"""Views of small clusters, and what their leaders say."""

from collections.abc import Awaitable, Callable
from functools import wraps

import msgspec
import trio
import trio.testing

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.control.agent_messages import AgentStatus
from rumq.cluster.control.control_plane import ControlHealth, MemberHealth
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.links.greeting import Answer

ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
HEALTH = ControlHealth(kind="etcd", members=[MemberHealth(endpoint="e1", version="3.5", is_leader=True, seconds=0.01)])


def node(name: str, *, host: str = "127.0.0.1", port: int = 1, leaves: bool = False) -> NodeRecord:
    """name: also its id, with the disk "name#0" where none is given"""
    node_id = name if "#" in name else f"{name}#0"
    return NodeRecord(
        id=node_id, host=host, port=port, mqtt=[f"{name}:1883"], zone="", incarnation="", version="1",
        feature_level=1, has_log=True, clock_us=0, leaves=leaves,
    )  # fmt: skip


def record(leader: str, *replicas: str, epoch: int = 1, claim: str = "c", **more: list[str] | None) -> Versioned:
    """Names without a disk get the disk 0."""

    def ids(names: list[str] | tuple[str, ...]) -> list[str]:
        return [each if "#" in each or not each else f"{each}#0" for each in names]

    given = {key: None if names is None else ids(names) for key, names in more.items()}
    return Versioned(
        ShardRecord(epoch=epoch, leader=ids([leader])[0], claim=claim, replicas=ids(replicas), **given),
        1,  # type: ignore[arg-type]
    )


def view_of(nodes: list[NodeRecord], *shards: Versioned, here: str = "a#0", is_current: bool = True) -> View:
    return View(cluster="c1", node=here, replicas=3, nodes=nodes, shards=list(shards), is_current=is_current)


def status_of(view: View | None, health: ControlHealth = HEALTH) -> AgentStatus:
    return AgentStatus(request=0, view=view, reports=[], processes=[], health=health, lost_seconds=0.0, requests=7)


def term(leader: str, *in_sync: str, epoch: int = 1, shard: int = 0, **more: object) -> TermRow:
    given: dict[str, object] = {
        "is_open": True, "has_quorum": True, "behind_records": {"b#0": 0, "c#0": 5},
        "behind_bytes": {"b#0": 0, "c#0": 512},
    }  # fmt: skip
    return TermRow(
        shard=shard, epoch=epoch, leader=f"{leader}#0", in_sync=[f"{each}#0" for each in in_sync],
        **(given | more),  # type: ignore[arg-type]
    )  # fmt: skip


def run_at_once(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test whose time jumps when all wait."""

    @wraps(test)
    def run() -> None:
        trio.run(test, clock=trio.testing.MockClock(autojump_threshold=0))

    return run
