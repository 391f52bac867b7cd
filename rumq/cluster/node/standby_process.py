"""A shard's process while it does not lead: a loop that blocks only for its disk, around `StandbyCore`.

What is written is synced in the loop itself: all that came at once is one group, and nothing else waits here. Ends when
it has taken office, or is told to stop."""

from __future__ import annotations

import os
import random
import selectors
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from commitlog.known_tail import KnownTail
from rumq.cluster.agent.agent_socket import AgentSocket
from rumq.cluster.agent.messages import Claim, Claimed, Done, Order, Report, Seen
from rumq.cluster.control.records import NodeRecord, View
from rumq.cluster.links.greeting import FEATURE_LEVEL, Greeting, Refused
from rumq.cluster.node.copy_disk import CopyDisk
from rumq.cluster.node.frame_link import FrameLink, LinkTls
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication.messages import ReplicaMessage
from rumq.cluster.replication.ports import ReplicaState
from rumq.cluster.replication.standby_core import PATIENCE_SECONDS, StandbyCore

REPORT_SECONDS = 1.0
AGENT_SECONDS = 0.2  # between attempts to reach the agent
GIVE_BACK_SECONDS = 0.1  # else a client would go to and fro between this process and the edge
NOTHING = memoryview(b"")
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Standing(NamedTuple):
    """Where a shard's process stands. node: id of this one; listener: for other nodes' processes

    give_back: called every now and then: clients that were handed to this process go back to the edge
    tls: of links between nodes, None for plain bytes
    disk: that of the copy, None if nobody looks after it
    scrub: called every now and then: a piece of the copies is read again; raises LogError for damage"""

    node: str
    shard: int
    agent_path: str
    listener: socket.socket
    give_back: Callable[[], None] = lambda: None
    tls: LinkTls | None = None
    disk: CopyDisk | None = None
    scrub: Callable[[], None] = lambda: None


class TakenOffice(NamedTuple):
    """lead: what the rules say; view: the last one; agent: the link to it; links: to the replicas that have promised

    tails: of the copies, by partition: what need not be read again"""

    lead: fx.Lead
    view: View
    agent: AgentSocket
    links: list[FrameLink]
    tails: dict[str, KnownTail]


class StandbyProcess:
    def __init__(
        self, standing: Standing, copies: NodeLogCopies, state: ReplicaState, tell: Callable[..., None]
    ) -> None:
        """tell: takes events"""
        self._standing, self._copies, self._tell = standing, copies, tell
        draw = random.Random(os.urandom(8))
        self._core = StandbyCore(
            standing.node, copies, state, patience=lambda: draw.uniform(*PATIENCE_SECONDS),
            unique=lambda: os.urandom(8).hex(), now=time.monotonic(),
            is_well=lambda: standing.disk is None or standing.disk.is_well(),
            can_lead=lambda: standing.disk is None or standing.disk.can_lead(),
        )  # fmt: skip
        self._state = state
        self._selector = selectors.DefaultSelector()
        self._selector.register(standing.listener, READ, self._accept)
        self._incoming: dict[int, FrameLink] = {}
        self._next_link = 0
        self._dialled: dict[str, FrameLink] = {}
        self._addresses: dict[str, NodeRecord] = {}
        self._view: View | None = None
        self._agent: AgentSocket | None = None
        self._agent_at = self._report_at = self._give_back_at = 0.0
        self._request = 0
        self._lead: fx.Lead | None = None
        self._has_work = False

    def run(self, is_stopping: Callable[[], bool]) -> TakenOffice | None:
        """Until it leads, or `is_stopping`: None. raises: OSError, LogError: this copy cannot go on (R10)"""
        core = self._core
        while self._lead is None:
            if is_stopping():
                self._close()
                return None
            now = time.monotonic()
            self._meet_agent(now)
            wait = max(0.0, min(core.next_deadline, self._report_at, now + AGENT_SECONDS) - now)
            wait = 0.0 if self._has_work else wait
            for key, _ in self._selector.select(wait):
                key.data()
            began = time.monotonic()
            core.flush()
            if self._standing.disk is not None:
                self._standing.disk.took(time.monotonic() - began)
            core.tick(time.monotonic())
            self._carry_out()
            self._has_work = self._copies.work()  # behind the acknowledgements
            self._standing.scrub()
            self._report(time.monotonic())
            if now >= self._give_back_at:
                self._give_back_at = now + GIVE_BACK_SECONDS
                self._standing.give_back()
        return self._taken(self._lead)

    def _carry_out(self) -> None:
        while effects := self._core.take_effects():
            for effect in effects:
                if isinstance(effect, fx.Reply):
                    self._reply(effect)
                elif isinstance(effect, fx.Send):
                    self._send(effect.peer, effect.message)
                elif isinstance(effect, fx.Serve):
                    if (link := self._incoming.get(effect.link)) is not None:
                        link.supply = self._copies.serve(effect.epoch, effect.partition, effect.have)
                        self._flush_incoming(effect.link, link)
                elif isinstance(effect, fx.ClaimShard):
                    self._claim(effect)
                elif isinstance(effect, fx.Alarm):
                    self._tell(effect.name, shard=self._standing.shard, why=effect.why)
                elif isinstance(effect, fx.Lead):
                    self._lead = effect

    # Links that others dial

    def _accept(self) -> None:
        try:
            sock, _ = self._standing.listener.accept()
        except OSError:
            return
        link = FrameLink(sock, self._standing.tls)
        self._next_link += 1
        number = self._next_link
        self._incoming[number] = link
        greeted = False

        def ready() -> None:
            nonlocal greeted
            for message, raw in link.read():
                if not greeted:
                    greeted = True
                    if not self._welcomes(link, message):
                        break
                else:
                    self._core.received(number, message, raw, time.monotonic())
            self._flush_incoming(number, link)

        self._selector.register(link.fd, READ, ready)

    def _welcomes(self, link: FrameLink, message: ReplicaMessage) -> bool:
        """Whether a connection is for this process as it is now: replication alone."""
        standing = self._standing
        if not isinstance(message, Greeting):
            why = "a connection begins with a greeting"
        elif self._view is None:
            why = f"{standing.node} has not met its cluster yet"
        elif (message.cluster, message.shard) != (self._view.cluster, standing.shard):
            here = f"shard {standing.shard} of cluster {self._view.cluster}"
            why = f"this is {here}, not {message.shard} of {message.cluster}"
        elif message.level > FEATURE_LEVEL:
            why = f"this node knows feature level {FEATURE_LEVEL}, the other one has {message.level}: upgrade this one"
        elif message.kind != "replica":
            why = f"{standing.node} does not lead shard {standing.shard}"
        else:
            return True
        link.send(Refused(why))
        link.closes = True
        return False

    def _reply(self, effect: fx.Reply) -> None:
        link = self._incoming.get(effect.link)
        if link is not None:
            link.send(effect.message)
            link.closes = link.closes or effect.is_last
            self._flush_incoming(effect.link, link)

    def _flush_incoming(self, number: int, link: FrameLink) -> None:
        link.flush()
        if not link.closed:
            self._watch(link)
        elif self._incoming.pop(number, None) is not None:
            self._selector.unregister(link.fd)
            self._core.lost(number, time.monotonic())

    # Links that this process dials

    def _send(self, peer: str, message: ReplicaMessage) -> None:
        link = self._dialled.get(peer)
        if link is None:
            link = self._dial(peer)
            if link is None:
                self._core.unreachable(peer, time.monotonic())
                return
        link.send(message)
        self._flush_dialled(peer, link)

    def _dial(self, peer: str) -> FrameLink | None:
        node = self._addresses.get(peer)
        if node is None or self._view is None:
            return None
        standing = self._standing
        try:
            # Addresses of a cluster are on its own network: a name that is looked up is looked up in no time.
            family, kind, proto, _, address = socket.getaddrinfo(
                node.host, node.port + 1 + standing.shard, type=socket.SOCK_STREAM
            )[0]
            sock = socket.socket(family, kind, proto)
        except OSError:
            return None
        sock.setblocking(False)
        if sock.connect_ex(address) not in (0, 115):  # EINPROGRESS
            sock.close()
            return None
        link = FrameLink(sock, standing.tls, is_connecting=True)
        epoch = self._core.record.epoch if self._core.record is not None else 0
        link.send(Greeting("replica", self._view.cluster, standing.node, standing.shard, epoch))
        self._dialled[peer] = link

        def ready() -> None:
            if not link.is_connecting:
                for message, raw in link.read():
                    if isinstance(message, Refused):
                        link.close()
                        break
                    self._core.answered(peer, message, raw, time.monotonic())
            self._flush_dialled(peer, link)

        self._selector.register(link.fd, READ | WRITE, ready)
        return link

    def _flush_dialled(self, peer: str, link: FrameLink) -> None:
        link.flush()
        if not link.closed:
            self._watch(link)
        elif self._dialled.get(peer) is link:
            del self._dialled[peer]
            self._selector.unregister(link.fd)
            self._core.unreachable(peer, time.monotonic())

    def _watch(self, link: FrameLink) -> None:
        """Wait for the socket to take more only while there is more."""
        key = self._selector.get_key(link.fd)
        wanted = READ | WRITE if link.has_output else READ
        if key.events != wanted:
            self._selector.modify(link.fd, wanted, key.data)

    # The agent

    def _meet_agent(self, now: float) -> None:
        if self._agent is not None or now < self._agent_at:
            return
        self._agent_at = now + AGENT_SECONDS
        try:
            self._agent = AgentSocket(self._standing.agent_path, "shard", self._standing.shard)
        except OSError:
            return  # it starts, or is started again
        self._selector.register(self._agent.fileno(), READ, self._hear_agent)

    def _hear_agent(self) -> None:
        assert self._agent is not None
        fd = self._agent.fileno()
        try:
            messages = self._agent.receive()
        except OSError:
            self._selector.unregister(fd)
            self._agent.close()
            self._agent = None
            return
        for message in messages:
            now = time.monotonic()
            if isinstance(message, Seen):
                self._see(message.view, now)
            elif isinstance(message, Claimed) and message.request == self._request:
                self._core.claimed(message.won, message.known, message.now, now)
            elif isinstance(message, Order):
                why = f"{self._standing.node} does not lead shard {self._standing.shard} now: ask again"
                self._agent.send(Done(message.request, why))

    def _see(self, view: View, now: float) -> None:
        self._view = view
        self._addresses.update({each.id: each for each in view.nodes})
        shard = self._standing.shard
        if self._state.note_restored(view.restored):
            self._tell("cluster.copy_doubted", shard=shard, why="the disk was restored from an old copy")
        known = view.shards[shard] if shard < len(view.shards) else None
        self._core.seen(known if known is not None and known.revision else None, view.is_current, now)

    def _claim(self, effect: fx.ClaimShard) -> None:
        self._request += 1
        if self._agent is None:
            self._core.claimed(False, True, None, time.monotonic())
            return
        self._agent.send(Claim(self._request, self._standing.shard, effect.revision, effect.record))

    def _report(self, now: float) -> None:
        if self._agent is None or now < self._report_at:
            return
        self._report_at = now + REPORT_SECONDS
        figures: dict[str, Any] = {
            "ends": self._copies.ends(), "promised": self._state.promised, "opened": self._state.opened,
            "hears_leader": self._core.hears_leader(now), "pid": os.getpid(),
        }  # fmt: skip
        self._agent.send(Report(self._standing.shard, "standby", self._state.promised, figures))

    # The end

    def _taken(self, lead: fx.Lead) -> TakenOffice:
        """Close what followers have dialled; what this process has dialled goes on, for beats."""
        assert self._view is not None and self._agent is not None
        for link in self._incoming.values():
            link.close()
        self._selector.close()
        tails = self._copies.tails()
        self._copies.close()
        links = [link for link in self._dialled.values() if not link.is_connecting]
        for link in self._dialled.values():
            if link.is_connecting:
                link.close()
        return TakenOffice(lead, self._view, self._agent, links, tails)

    def _close(self) -> None:
        for link in (*self._incoming.values(), *self._dialled.values()):
            link.close()
        self._selector.close()
        self._copies.close()
        if self._agent is not None:
            self._agent.close()
