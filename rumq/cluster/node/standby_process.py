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
from concurrent.futures import Future
from typing import Any, NamedTuple

from commitlog import LogError
from commitlog.known_tail import KnownTail
from rumq.cluster.agent.agent_socket import STARTING, AgentSocket
from rumq.cluster.agent.messages import Claim, Claimed, Done, Order, Report, Seen
from rumq.cluster.agent.report_filter import ReportFilter
from rumq.cluster.control.records import NodeRecord, View
from rumq.cluster.links.greeting import COPY, FEATURE_LEVEL, TO_A_STRANGER, Greeting, Refused, Taken
from rumq.cluster.links.greeting_queue import GREETINGS_MAX
from rumq.cluster.links.impostor_log import ImpostorLog
from rumq.cluster.node.copy_disk import CopyDisk
from rumq.cluster.node.copy_inquiries import CopyInquiries
from rumq.cluster.node.frame_link import FrameLink, LinkTls
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.node.standby_port import LinkOwner, Refusal, StandbyPort
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication.messages import Beat, ReplicaMessage
from rumq.cluster.replication.ports import ReplicaState
from rumq.cluster.replication.standby_core import PATIENCE_SECONDS, StandbyCore

REPORT_SECONDS = 1.0
AGENT_SECONDS = 0.2  # between attempts to reach the agent
WORK_SECONDS = 1.0  # between looks at what the copies want, while only beats come
GIVE_BACK_SECONDS = 0.1  # else a client would go to and fro between this process and the edge
NODE_CHARS_MAX = 200  # of what a stranger says, in the log
NOTHING = memoryview(b"")
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Standing(NamedTuple):
    """Where a shard's process stands. node: id of this one; listener: for other nodes' processes

    give_back: called every now and then: clients that were handed to this process go back to the edge
    tls: of links between nodes, None for plain bytes
    disk: that of the copy, None if nobody looks after it
    scrub: called every now and then: a piece of the copies is read again; raises LogError for damage
    fits: whether these are the partitions of the cluster that a view shows
    greetings_max: connections at once that have not greeted; it leaves descriptors to the log and to what is dialled
    look_after: called every now and then: `tls` may have new certificates behind it
    inquiries: answers what the copies have, None if nobody may ask"""

    node: str
    shard: int
    agent_path: str
    listener: socket.socket
    give_back: Callable[[], None] = lambda: None
    tls: LinkTls | None = None
    disk: CopyDisk | None = None
    scrub: Callable[[], None] = lambda: None
    fits: Callable[[View], bool] = lambda view: True
    greetings_max: int = GREETINGS_MAX
    look_after: Callable[[], None] = lambda: None
    inquiries: CopyInquiries | None = None


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
        self._port = StandbyPort(
            standing.listener, self._selector, standing.tls, standing.greetings_max,
            LinkOwner(self._welcome, self._received, self._core.lost, self._greeted), tell,
        )  # fmt: skip
        self._asked: list[tuple[int, Future[bytes]]] = []  # about the copies, and the link that waits for it
        self._dialled: dict[str, FrameLink] = {}
        self._impostors = ImpostorLog(tell)
        self._addresses: dict[str, NodeRecord] = {}
        self._view: View | None = None
        self._agent: AgentSocket | None = None
        self._has_told_agent = False
        self._reports = ReportFilter()
        self._agent_at = self._report_at = self._give_back_at = self._work_at = 0.0
        self._has_news = False  # something else than a beat has come
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
            next_deadline = min(core.next_deadline, self._port.next_deadline)
            wait = max(0.0, min(next_deadline, now + AGENT_SECONDS) - now)
            wait = 0.0 if self._has_work else wait
            for key, _ in self._selector.select(wait):
                key.data()
            self._port.turn()
            began = time.monotonic()
            core.flush()
            if self._standing.disk is not None:
                self._standing.disk.took(time.monotonic() - began)
            core.tick(time.monotonic())
            self._carry_out()
            if self._has_work or self._has_news or now >= self._work_at:
                self._has_work, self._has_news = self._copies.work(), False  # behind the acknowledgements
                self._work_at = now + WORK_SECONDS
            self._standing.scrub()
            self._standing.look_after()
            self._answer_inquiries()
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
                    if (link := self._port.maybe_link(effect.link)) is not None:
                        link.supply = self._copies.serve(effect.epoch, effect.partition, effect.have)
                        self._port.flush(effect.link)
                elif isinstance(effect, fx.ClaimShard):
                    self._claim(effect)
                elif isinstance(effect, fx.Alarm):
                    self._tell(effect.name, shard=self._standing.shard, why=effect.why)
                elif isinstance(effect, fx.Lead):
                    self._lead = effect

    # Links that others dial

    def _received(self, link: int, message: ReplicaMessage, raw: memoryview, now: float) -> None:
        self._has_news = self._has_news or not isinstance(message, Beat)
        self._core.received(link, message, raw, now)

    def _welcome(self, message: ReplicaMessage, uris: tuple[str, ...]) -> Refusal | str:
        """Whether a connection is for this process as it is now: replication alone. A stranger learns nothing of it."""
        standing, view = self._standing, self._view
        if not isinstance(message, Greeting):
            return Refusal("a connection begins with a greeting", TO_A_STRANGER)
        if view is None:
            return Refusal(f"{standing.node} has not met its cluster yet", TO_A_STRANGER)
        if message.cluster != view.cluster:
            return Refusal(
                f"this is cluster {view.cluster}, not {message.cluster[:NODE_CHARS_MAX]}", TO_A_STRANGER
            )
        if standing.tls is not None and (problem := standing.tls.names.maybe_problem(uris, message.node)):
            return Refusal(f"{message.node[:NODE_CHARS_MAX]}: {problem}", TO_A_STRANGER)
        if message.shard != standing.shard:
            why = f"this is shard {standing.shard}, not {message.shard}"
        elif message.level > FEATURE_LEVEL:
            why = f"this node knows feature level {FEATURE_LEVEL}, the other one has {message.level}: upgrade this one"
        elif message.kind != "replica" and (message.kind != COPY or standing.inquiries is None):
            why = f"{standing.node} does not lead shard {standing.shard}"
            return Refusal(
                why, why, is_ordinary=True
            )  # when a shard moves, others dial the next leader early
        else:
            return message.node
        return Refusal(why, why)

    def _greeted(self, link: int, message: ReplicaMessage, raw: memoryview) -> None:
        inquiries = self._standing.inquiries
        if isinstance(message, Greeting) and message.kind == COPY and inquiries is not None:
            self._asked.append((link, inquiries.ask(bytes(raw))))

    def _answer_inquiries(self) -> None:
        for each in [each for each in self._asked if each[1].done()]:
            self._asked.remove(each)
            number, answer = each
            link = self._port.maybe_link(number)
            if link is not None:
                link.send(Taken())
                link.send_bytes(answer.result())
                link.closes = True
                self._port.flush(number)

    def _reply(self, effect: fx.Reply) -> None:
        link = self._port.maybe_link(effect.link)
        if link is not None:
            link.send(effect.message)
            link.closes = link.closes or effect.is_last
            self._port.flush(effect.link)

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
        link = FrameLink(sock, standing.tls, is_connecting=True, node=peer)
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

        link.is_watched_for_room = True
        self._selector.register(link.fd, READ | WRITE, ready)
        return link

    def _flush_dialled(self, peer: str, link: FrameLink) -> None:
        link.flush()
        if not link.closed:
            self._watch(link)
        elif self._dialled.get(peer) is link:
            del self._dialled[peer]
            if link.is_impostor:
                self._impostors.met(peer, link.why, time.monotonic())
            self._selector.unregister(link.fd)
            self._core.unreachable(peer, time.monotonic())

    def _watch(self, link: FrameLink) -> None:
        """Wait for the socket to take more only while there is more."""
        if link.has_output != link.is_watched_for_room:
            link.is_watched_for_room = link.has_output
            wanted = READ | WRITE if link.has_output else READ
            self._selector.modify(link.fd, wanted, self._selector.get_key(link.fd).data)

    # The agent

    def _meet_agent(self, now: float) -> None:
        if self._agent is not None or now < self._agent_at:
            return
        self._agent_at = now + AGENT_SECONDS
        try:
            self._agent = AgentSocket(self._standing.agent_path, "shard", self._standing.shard)
        except OSError as fault:
            if fault.errno not in STARTING and not self._has_told_agent:
                self._has_told_agent = True
                self._tell("cluster.agent_unreachable", path=self._standing.agent_path, why=str(fault))
            return  # it starts, or is started again
        self._reports.forget()
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
            self._core.claimed(
                False, False, None, time.monotonic()
            )  # it may have sent a claim, and answers no more
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
        if not self._standing.fits(view):
            raise LogError(
                "the cluster has other partitions than this process has opened: it begins anew with those"
            )
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
        report = Report(self._standing.shard, "standby", self._state.promised, figures)
        if self._reports.wants(report):
            self._agent.send(report)

    # The end

    def _taken(self, lead: fx.Lead) -> TakenOffice:
        """Close what followers have dialled; what this process has dialled goes on, for beats."""
        assert self._view is not None and self._agent is not None
        self._port.close()
        self._selector.close()
        tails = self._copies.tails()
        self._copies.close()
        links = [link for link in self._dialled.values() if not link.is_connecting]
        for link in self._dialled.values():
            if link.is_connecting:
                link.close()
        return TakenOffice(lead, self._view, self._agent, links, tails)

    def _close(self) -> None:
        self._port.close()
        for link in self._dialled.values():
            link.close()
        self._selector.close()
        self._copies.close()
        if self._agent is not None:
            self._agent.close()
