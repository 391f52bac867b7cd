"""From a broker alone to three nodes, to five, and back to three, while clients publish.

Nobody is refused and nothing is lost. Publishers of QoS 1 and 2, lasting sessions, a shared group, wills, and a new
client at each node every now and then. The figures are printed (`-s`): docs/guides/cluster.md."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.cluster import Cluster
from tests.broker_process import Rumqd
from tests.cli.conftest import Ended as Done
from tests.cli.conftest import rumqd
from tests.cluster.live.checker import (
    acknowledged_nowhere,
    check_copies,
    check_replays,
    replay,
    settled_copies,
)
from tests.cluster.live.cluster import address_of
from tests.cluster.live.gaps import gap_of
from tests.cluster.live.test_live import pytestmark as needs_etcd
from tests.cluster.live.workload import LOST, Client, Doors, Workload
from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Prop, Will
from tests.faults.kill.ledger import Ledger

pytestmark = needs_etcd
PUBLISHERS = 6
LASTING = [(Prop.SESSION_EXPIRY, 3600)]
SECONDS_MAX = 60.0
CONNECT_SECONDS_MAX = 5.0  # half of what an edge waits for a leader; an idle machine needs milliseconds
GAP_SECONDS_MAX = 4.0  # on a machine that others use; the figure to reach on an idle one is 1 s


class Newcomers:
    """A thread of clients that are new, one at each of `addresses` in turn. refused: CONNACKs that were not 0"""

    def __init__(self, addresses: list[Address]) -> None:
        self.addresses = addresses
        self.refused: list[str] = []
        self.slowest_s = 0.0
        self.count = 0
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self.stopping.is_set():
            address = self.addresses[self.count % len(self.addresses)]
            began = time.monotonic()
            try:
                with Peer(address, deadline_s=15) as peer:
                    code = peer.connect(f"new-{self.count}").code
                    if code:
                        self.refused.append(f"new-{self.count} at {address}: {code:#04x}")
            except LOST as fault:
                self.refused.append(f"new-{self.count} at {address}: {fault!r}")
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self.count += 1
            self.stopping.wait(0.02)

    def end(self) -> None:
        self.stopping.set()
        self._thread.join(30)


class Members:
    """What this test has of its cluster. doors: where clients connect, which grows with the nodes"""

    def __init__(self, data: Path) -> None:
        self.cluster = Cluster(data, 5, 3, settings=["log.segment_bytes_max=262144"])
        self.nodes = self.cluster.nodes
        self.addresses = [address_of(each) for each in self.nodes]
        first = self.addresses[0]
        self.alone = Rumqd(data / "n1", "--set", "shards.count=1", "--port", str(first[1]))
        self.ledger = Ledger()
        self.doors = Doors(self.addresses[:1], 7)
        self.workload = Workload(self.doors, PUBLISHERS, 3, self.ledger)
        self.figures: list[str] = []
        self.group: list[Listener] = []
        self.watcher: Listener

    def begin(self) -> None:
        """Clients of the broker alone: publishers, lasting sessions, a shared group, a session for wills."""
        self.alone.start()
        self.group = [Listener(f"g{number}", "$share/g/t/#", self.doors, 0) for number in range(2)]
        self.watcher = Listener("watcher", "wills", self.doors, 0)
        self.workload.start()
        assert not self.workload.wait_for_acks(30)

    def group_lacks(self) -> set[bytes]:
        """What was acknowledged and the shared group has not got."""
        got = {payload for each in self.group for payload in each.got}
        return {entry.payload for entry in self.ledger.acknowledged} - got

    def end(self) -> None:
        for each in [*self.group, *([self.watcher] if self.group else [])]:
            each.end()
        self.workload.end()
        self.alone.end()
        self.cluster.stop()

    def ask(self, *words: str) -> Done:
        return rumqd("cluster", *words, "--data", str(self.nodes[0].data))

    def order(self, *words: str) -> None:
        ended = self.ask(*words)
        assert ended.status == 0, (words, ended.out, ended.err)

    def copies(self) -> dict[int, list[str]]:
        """Names of the nodes that have copies, by shard."""
        found = json.loads(self.ask("status", "--json").out)["shards"]
        return {each["shard"]: sorted(one.partition("#")[0] for one in each["replicas"]) for each in found}

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + SECONDS_MAX
        while not is_so():
            assert time.monotonic() < until, f"{what}: {self.ask('status').out}"
            time.sleep(0.05)

    def is_well(self) -> bool:
        return self.ask("status").status == 0

    def at_home(self, count: int) -> None:
        """Clients are spread over the first nodes."""
        self.doors.addresses[:] = self.addresses[:count]
        for number, each in enumerate([*self.workload.publishers, *self.workload.subscribers]):
            each.client.home = number % count
        for one in [*self.group, self.watcher]:
            one.go_home()
        self.workload.go_home()
        assert not self.workload.wait_for_acks(30)

    @contextmanager
    def measured(self, what: str) -> Iterator[None]:
        """The longest time that a publisher waits for an acknowledgement meanwhile."""
        began = time.monotonic()
        yield
        ended = time.monotonic()
        assert not self.workload.wait_for_acks(30), what
        gap = max(gap_of(each.acked_at, began, ended) for each in self.workload.publishers)
        self.figures.append(f"{what}: {ended - began:.2f} s, longest wait {gap:.3f} s")
        self.gap = gap


class Listener:
    """A lasting session in a thread of its own, which comes back whenever its connection ends. got: payloads"""

    def __init__(self, name: str, topic_filter: str, doors: Doors, home: int) -> None:
        self.name, self.got = name, list[bytes]()
        self._client = Client(doors, home)
        with Peer(doors.addresses[0], deadline_s=30) as peer:
            peer.connect(name, clean=False, properties=LASTING)
            peer.subscribe(topic_filter, qos=1)
        self._thread = threading.Thread(target=self._client.run, args=(self._serve,), daemon=True)
        self._thread.start()

    def _serve(self, address: Address) -> None:
        with Peer(address, deadline_s=15) as peer:
            connack = peer.connect(self.name, clean=False, properties=LASTING)
            if connack.code:
                raise Ended(f"CONNACK {connack.code:#04x}")
            assert connack.session_present
            self._client.was_accepted = True
            while not self._client.stopping.is_set() and not self._client.goes_home.is_set():
                packet = peer.receive(0.2)
                if packet.kind == Kind.DISCONNECT:
                    raise Ended(f"DISCONNECT {packet.code:#04x}")
                if packet.kind == Kind.PUBLISH:
                    self.got.append(packet.payload)
                    peer.acknowledge(packet)

    def go_home(self) -> None:
        self._client.goes_home.set()

    def end(self) -> None:
        self._client.stopping.set()
        self._thread.join(30)


def wills(members: Members, number: int) -> None:
    """A client that vanishes without a word, at the node with that number: its will comes."""
    name = f"will-{number}-{time.monotonic_ns()}"
    peer = Peer(members.addresses[number], deadline_s=30)
    assert not peer.connect(name, properties=LASTING, will=Will("wills", name.encode(), 1)).code
    peer.reset()
    members.until(lambda: name.encode() in members.watcher.got, f"the will of {name}")


def grow_and_shrink(members: Members) -> None:
    """3 to 5 and back, by moves and by additions; wills are tried after each change."""
    for number in (3, 4):
        members.nodes[number].start()
    members.until(lambda: len(json.loads(members.ask("status", "--json").out)["nodes"]) == 5, "five nodes do not meet")
    with members.measured("move a copy to n4, and the leader's own to n5"):
        members.order("move", "0", "--from", "n2", "--to", "n4")
        members.order("move", "1", "--from", "n1", "--to", "n5")
    with members.measured("add n4 and n5 to a shard"):
        members.order("add", "n4", "--shard", "2")
        members.order("add", "n5", "--shard", "2")
    assert members.copies()[2] == ["n1", "n2", "n3", "n4", "n5"]
    wills(members, 3)
    members.at_home(5)
    members.order("rebalance")
    wills(members, 4)
    members.at_home(3)
    with members.measured("remove n4"):
        members.order("remove", "n4")
    with members.measured("remove n5"):
        members.order("remove", "n5")
    assert members.copies() == {shard: ["n1", "n2", "n3"] for shard in range(3)}, "n4 gets none of n5's"
    for number in (3, 4):
        members.nodes[number].stop()
    members.until(members.is_well, "three nodes are not well")
    wills(members, 1)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_one_node_becomes_three_and_five_and_three_under_load(tmp_path: Path) -> None:
    members = Members(tmp_path)
    cluster, workload = members.cluster, members.workload
    newcomers: Newcomers | None = None
    try:
        members.begin()
        for each in cluster.etcds:
            each.start()
        members.until(lambda: cluster.etcd_leader() is not None, "etcd has no leader")
        for number in (1, 2):
            cluster.nodes[number].start()
        members.until(
            lambda: all((node.data / "_cluster/agent.sock").exists() for node in cluster.nodes[1:3]), "agents"
        )
        with members.measured("the broker alone becomes n1"):
            assert members.alone.stop() == 0
            cluster.nodes[0].start()
            assert not workload.wait_for_acks(SECONDS_MAX)
        members.until(members.is_well, "three nodes are not well")
        assert members.copies() == {shard: ["n1", "n2", "n3"] for shard in range(3)}
        members.at_home(3)
        newcomers = Newcomers(members.addresses[:3])
        grow_and_shrink(members)
        newcomers.end()
        assert not newcomers.refused and newcomers.count > 20
        members.figures.append(f"{newcomers.count} new clients, the slowest {newcomers.slowest_s:.3f} s")
        faults = workload.drain(60) + workload.finish(60)
        members.until(lambda: not members.group_lacks(), "the shared group lacks messages")
        assert len(members.watcher.got) == len(set(members.watcher.got)) == 3, "each will comes once"
        names = [node.name for node in cluster.nodes[:3]]
        copies = settled_copies({name: tmp_path / name for name in names}, 20.0)
        replays = {
            name: replay(address, PUBLISHERS, 60) for name, address in zip(names, members.addresses, strict=False)
        }
        faults += check_copies(copies, members.ledger) + check_replays(replays, copies, members.ledger)
        for subscriber in workload.subscribers:
            faults += members.ledger.check_subscriber(subscriber.name, subscriber.qos)
        assert not faults + members.ledger.faults, (faults + members.ledger.faults)[:20]
        assert not acknowledged_nowhere(copies, members.ledger) and len(members.ledger.acknowledged) > 500
        assert newcomers.slowest_s < CONNECT_SECONDS_MAX and members.gap < GAP_SECONDS_MAX, members.figures
    finally:
        print("\n".join(members.figures))
        if newcomers is not None:
            newcomers.end()
        members.end()
