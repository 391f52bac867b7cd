"""`rumqd cluster`, against an agent that answers what a test tells it to."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.agent.node_identity import node_identity
from rumq.cluster.control.agent_messages import (
    SOCKET_NAME,
    AgentMessage,
    AgentStatus,
    AskStatus,
    Claim,
    Claimed,
    DrainNode,
    Here,
    Order,
    OrderResult,
    Report,
)
from rumq.cluster.control.control_plane import ControlHealth, MemberHealth
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.net.frames import MessageReader, encoded
from rumq.unix_address import Address
from tests.cli.conftest import Ended, rumqd


def node(name: str, **fields: Any) -> NodeRecord:
    plain = NodeRecord(
        id=f"{name}#{name * 4}", host="10.0.0.1", port=7883, mqtt=["10.0.0.1:1883"], zone="a", incarnation="1",
        version="0.1.0", feature_level=1, has_log=True, clock_us=0,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def shard(leader: str, *replicas: str, **fields: Any) -> Versioned:
    ids = [f"{name}#{name * 4}" for name in replicas]
    return Versioned(ShardRecord(epoch=4, leader=f"{leader}#{leader * 4}", claim="c", replicas=ids, **fields), 7)


def status_of(nodes: str, *shards: Versioned, is_current: bool = True, **fields: Any) -> AgentStatus:
    """nodes: names of those that live; the first one is asked"""
    names = nodes.split()
    view = View(
        cluster="c1d2", node=node(names[0]).id, replicas=3, nodes=[node(name) for name in names], shards=list(shards),
        is_current=is_current,
    )  # fmt: skip
    health = ControlHealth(
        kind="etcd", members=[MemberHealth(endpoint="http://e:2379", version="3.5.28", is_leader=True)]
    )
    plain = AgentStatus(0, view, [Report(0, "leader", 4, {"behind": {"b#bbbb": 3}})], [], health, 0.0, 9)
    return msgspec.structs.replace(plain, **fields)


class Agent:
    """heard: what an operator said. why: the answer to orders; then: the status after one; won: the answer to claims"""

    def __init__(self, data: Path, status: AgentStatus) -> None:
        self.status, self.why, self.won = status, "", True
        self.then: AgentStatus | None = None
        self.heard: list[AgentMessage] = []
        (data / "_cluster").mkdir(parents=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with Address(f"{data}/{SOCKET_NAME}") as address:
            self._listener.bind(address)
        self._listener.listen()
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _run(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    reader: MessageReader[AgentMessage] = MessageReader(AgentMessage)
                    while data := connection.recv(1 << 16):
                        for message, _ in reader.feed(data):
                            self.heard.append(message)
                            if (answer := self._answer(message)) is not None:
                                connection.sendall(encoded(answer))
        except OSError:
            return

    def _answer(self, message: AgentMessage) -> AgentMessage | None:
        match message:
            case AskStatus(request=request):
                return msgspec.structs.replace(self.status, request=request)
            case Order(request=request) | DrainNode(request=request):
                self.status = self.then or self.status
                return OrderResult(request, self.why)
            case Claim(request=request):
                return Claimed(request, self.won, True, None)
        return None

    def orders(self) -> list[tuple[str, int, str, list[str]]]:
        return [(each.what, each.shard, each.to, each.members) for each in self.heard if isinstance(each, Order)]


Ask = Callable[..., Ended]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def agents() -> Iterator[list[Agent]]:
    made: list[Agent] = []
    yield made
    for each in made:
        each.close()


@pytest.fixture
def agent(data: Path, agents: list[Agent]) -> Callable[[AgentStatus], Agent]:
    def make(status: AgentStatus) -> Agent:
        agents.append(Agent(data, status))
        return agents[-1]

    return make


@pytest.fixture
def cluster(data: Path) -> Ask:
    def ask(command: str, *flags: str, stdin: bytes = b"") -> Ended:
        return rumqd("cluster", command, "--data", str(data), *flags, stdin=stdin)

    return ask


WHOLE = status_of("a b c", shard("a", "a", "b", "c"), shard("b", "b", "c", "a"))


def test_without_an_agent_it_says_how_to_start_one(cluster: Ask) -> None:
    ended = cluster("status")
    assert ended.status == 1 and "rumqd run --data" in ended.err and "Traceback" not in ended.err


def test_status_shows_nodes_shards_and_the_control_plane(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    server = agent(WHOLE)
    ended = cluster("status")
    assert ended.status == 0, ended.err
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["a", "aaaa", "a", "10.0.0.1:7883", "10.0.0.1:1883", "0.1.0", "1", "2", "alive"] in rows
    assert ["0", "4", "a", "a", "b", "c", "-", "leader", "b:3"] in rows
    assert "leader, version 3.5.28" in ended.out and "wrong" not in ended.out
    assert ended.out.startswith("health: ok\n")
    assert isinstance(server.heard[0], Here) and server.heard[0].role == "operator"


def test_status_as_json_has_the_records(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    agent(WHOLE)
    found = json.loads(cluster("status", "--json").out)
    assert [each["leader"] for each in found["shards"]] == ["a#aaaa", "b#bbbb"] and found["wrong"] == []
    assert [each["name"] for each in found["nodes"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (status_of("a b", shard("a", "a", "b", "c")), ["its copy at c is gone", "cluster move 0 --from c"]),
        (status_of("a", shard("a", "a", "b", "c")), ["2 of 3 replicas are gone", "force-leader --help"]),
        (status_of("a b", shard("c", "a", "b", "c")), ["shard 0 has no leader that lives"]),
        (
            status_of("a b c", shard("a", "a", "b", "c"), is_current=False, lost_seconds=3.0),
            ["the control plane does not answer"],
        ),
        (msgspec.structs.replace(WHOLE, view=None), ["has not answered since this node started"]),
    ],
)
def test_status_says_what_is_wrong_and_the_way_out(
    agent: Callable[[AgentStatus], Agent], cluster: Ask, status: AgentStatus, words: list[str]
) -> None:
    agent(status)
    ended = cluster("status")
    assert ended.status == 1 and all(word in ended.out for word in words), ended.out
    assert ended.out.splitlines()[0] == f"health: {ended.out.count('wrong: ')} wrong"


def test_status_tells_what_the_leaders_say(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    row = TermRow(
        shard=0, epoch=4, leader="a#aaaa", is_open=True, has_quorum=True, in_sync=["a#aaaa", "b#bbbb"],
        behind_records={"b#bbbb": 0, "c#cccc": None}, behind_bytes={},
    )  # fmt: skip
    agent(msgspec.structs.replace(status_of("a b c", shard("a", "a", "b", "c")), terms=[row]))
    ended = cluster("status")
    assert ended.status == 1 and "the copy at c is being compared, fails" in ended.out
    assert json.loads(cluster("status", "--json").out)["health"] == "wrong"


def test_move_without_a_source_hands_over_and_with_one_moves_a_copy(
    agent: Callable[[AgentStatus], Agent], cluster: Ask
) -> None:
    server = agent(status_of("a b c d", shard("a", "a", "b", "c")))
    assert cluster("move", "0", "--to", "b").status == 0
    assert cluster("move", "0", "--from", "c", "--to", "d").status == 0
    assert server.orders() == [
        ("hand-over", 0, "b#bbbb", []),
        ("members", 0, "", ["a#aaaa", "b#bbbb", "d#dddd"]),
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["0", "--to", "d"], "d has no copy of shard 0"),
        (["0", "--from", "d", "--to", "a"], "d has no copy of shard 0"),
        (["0", "--from", "a", "--to", "b"], "b has a copy of shard 0 already"),
        (["0", "--to", "x"], "there is no node x; alive are a b c d"),
        (["5", "--to", "a"], "there is no shard 5"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused(
    agent: Callable[[AgentStatus], Agent], cluster: Ask, flags: list[str], words: str
) -> None:
    server = agent(status_of("a b c d", shard("a", "a", "b", "c")))
    ended = cluster("move", *flags)
    assert ended.status == 1 and words in ended.err and server.orders() == []


def test_an_order_that_the_leader_refuses_says_why(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    agent(WHOLE).why = "b is 3 GB behind"
    ended = cluster("move", "0", "--to", "b")
    assert ended.status == 1 and "not handed over" in ended.err and "b is 3 GB behind" in ended.err


def test_an_order_that_came_true_without_an_answer_is_done(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    """The leader hands over and ends: its answer is lost, the record tells."""
    server = agent(WHOLE)
    server.why, server.then = "the process of shard 0 ended", status_of("a b c", shard("b", "a", "b", "c"))
    ended = cluster("move", "0", "--to", "b")
    assert ended.status == 0 and "shard 0 is led by b#bbbb" in ended.out, ended.err


def test_nothing_is_ordered_while_the_control_plane_is_away(
    agent: Callable[[AgentStatus], Agent], cluster: Ask
) -> None:
    server = agent(status_of("a b c", shard("a", "a", "b", "c"), is_current=False))
    ended = cluster("rebalance")
    assert ended.status == 1 and "nothing can be changed" in ended.err and server.orders() == []


def test_add_puts_a_copy_of_the_named_shards_on_a_node(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    server = agent(status_of("a b c", shard("a", "a", "b"), shard("b", "b", "c"), shard("a", "a", "b")))
    assert cluster("add", "c", "--shard", "0", "--shard", "1").status == 0
    assert server.orders() == [("members", 0, "", ["a#aaaa", "b#bbbb", "c#cccc"])], "shard 1 is there already"


def test_remove_gives_each_copy_to_a_node_that_has_none(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    server = agent(status_of("a b d", shard("a", "a", "b", "c"), shard("b", "a", "b")))
    assert cluster("remove", "c").status == 0
    assert server.orders() == [("members", 0, "", ["a#aaaa", "b#bbbb", "d#dddd"])]
    [first] = [each for each in server.heard if isinstance(each, DrainNode | Order)][:1]
    assert first == DrainNode(first.request, True, "c#cccc"), "before its copies go: it gets none of the next one's"


def test_a_node_that_was_removed_gets_no_copy_until_it_is_added(
    agent: Callable[[AgentStatus], Agent], cluster: Ask
) -> None:
    def removed(*shards: Versioned) -> AgentStatus:
        status = status_of("a b c d e", *shards)
        assert status.view is not None
        nodes = [msgspec.structs.replace(each, leaves=each.name == "d") for each in status.view.nodes]
        view = msgspec.structs.replace(status.view, nodes=nodes, removed=["d#dddd"])
        return msgspec.structs.replace(status, view=view)

    server = agent(removed(shard("a", "a", "b", "e")))
    assert "removed" in cluster("status").out
    assert cluster("remove", "e").status == 0
    assert server.orders() == [("members", 0, "", ["a#aaaa", "b#bbbb", "c#cccc"])]
    server.heard.clear()
    assert cluster("add", "d", "--shard", "0").status == 0
    assert [each.leaves for each in server.heard if isinstance(each, DrainNode)] == [False]


def test_the_last_copies_that_can_acknowledge_are_not_removed(
    agent: Callable[[AgentStatus], Agent], cluster: Ask
) -> None:
    server = agent(status_of("a b", shard("a", "a", "b")))
    ended = cluster("remove", "b")
    assert ended.status == 1 and "would have 1 of 3 copies" in ended.err
    assert server.orders() == [] and not [each for each in server.heard if isinstance(each, DrainNode)]


def test_drain_says_so_and_hands_over_what_the_node_leads(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    server = agent(status_of("a b c", shard("a", "a", "b", "c"), shard("b", "b", "c", "a"), shard("a", "a", "b", "c")))
    assert cluster("drain").status == 0
    assert [each.leaves for each in server.heard if isinstance(each, DrainNode)] == [True]
    assert server.orders() == [("hand-over", 0, "c#cccc", []), ("hand-over", 2, "b#bbbb", [])], "evenly"
    assert cluster("drain", "--back").status == 0
    assert [each.leaves for each in server.heard if isinstance(each, DrainNode)] == [True, False]


def test_rebalance_moves_as_few_leaders_as_it_can(agent: Callable[[AgentStatus], Agent], cluster: Ask) -> None:
    three = [shard("a", "a", "b", "c")] * 3
    server = agent(status_of("a b c", *three))
    assert cluster("rebalance").status == 0
    assert sorted(to for _, _, to, _ in server.orders()) == ["b#bbbb", "c#cccc"]


LOST = status_of("a", shard("b", "a", "b", "c"))


def test_force_leader_needs_the_name_and_leaves_a_mark(
    agent: Callable[[AgentStatus], Agent], cluster: Ask, data: Path
) -> None:
    server = agent(LOST)
    node_identity(data, "demo", "a", has_log=True)
    refused = cluster("force-leader", "0", stdin=b"yes\n")
    assert refused.status == 1 and "nothing was changed" in refused.err and "Acknowledged messages" in refused.out
    assert not (data / "_cluster/forced.jsonl").exists()
    assert cluster("force-leader", "0", stdin=b"demo\n").status == 0
    [claim] = [each for each in server.heard if isinstance(each, Claim)]
    assert claim.revision == 7 and claim.record.epoch == 5 and claim.record.replicas == ["a#aaaa"]
    assert claim.record.leader == "" and claim.record.claim.startswith("forced-")
    [mark] = (data / "_cluster/forced.jsonl").read_text().splitlines()
    assert json.loads(mark)["after"]["claim"] == claim.record.claim


def test_force_leader_is_refused_where_a_majority_lives(
    agent: Callable[[AgentStatus], Agent], cluster: Ask, data: Path
) -> None:
    server = agent(WHOLE)
    node_identity(data, "demo", "a", has_log=True)
    ended = cluster("force-leader", "0", stdin=b"demo\n")
    assert ended.status == 1 and "needs no force" in ended.err
    assert not [each for each in server.heard if isinstance(each, Claim)]


def test_force_leader_that_is_overtaken_says_so(
    agent: Callable[[AgentStatus], Agent], cluster: Ask, data: Path
) -> None:
    agent(LOST).won = False
    node_identity(data, "demo", "a", has_log=True)
    ended = cluster("force-leader", "0", stdin=b"demo\n")
    assert ended.status == 1 and "has changed meanwhile" in ended.err
