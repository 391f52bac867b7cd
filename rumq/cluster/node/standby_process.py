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
from commitlog.format.known_tail import KnownTail
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import AgentMessage, Claim, Claimed, Order, OrderResult, Report, Seen
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import COPY, FEATURE_LEVEL, TO_A_STRANGER, Greeting, Taken
from rumq.cluster.links.greeting_queue import GREETINGS_MAX
from rumq.cluster.node.agent_contact import AGENT_SECONDS, AgentContact
from rumq.cluster.node.copy_disk import CopyDisk
from rumq.cluster.node.copy_inquiries import CopyInquiries
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.node.peer_links import PeerCallbacks, PeerLinks
from rumq.cluster.node.standby_port import LinkOwner, Refusal, StandbyPort
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication.messages import Beat, ReplicaMessage
from rumq.cluster.replication.packing_members import PackingPatience
from rumq.cluster.replication.ports import ReplicaState
from rumq.cluster.replication.standby.leader_silence import PATIENCE_SECONDS
from rumq.cluster.replication.standby.standby_core import StandbyCore

WORK_SECONDS = 1.0  # between looks at the copies' work while only beats arrive
GIVE_BACK_SECONDS = 0.1  # before a client goes back to the edge, so that it does not go to and fro
NODE_CHARS_MAX = 200  # of what a stranger says, in the log


class StandbyContext(NamedTuple):
    """Where a shard's process stands. node: id of this one; listener: for other nodes' processes

    give_back: called every now and then: clients that were handed to this process go back to the edge
    tls: of links between nodes, None for plain bytes
    disk: that of the copy, None if nobody looks after it
    scrub: called every now and then: a piece of the copies is read again; raises LogError for damage
    fits: whether these are the partitions of the cluster that a view shows
    greetings_max: connections at once that have not greeted; it leaves descriptors to the log and to what is dialled
    look_after: called every now and then: `tls` may have new certificates behind it
    inquiries: answers what the copies have, None if nobody may ask
    pack: called every now and then, with monotonic seconds: a finished segment of the copies is packed
    may_pack: called before it: whether all nodes with a copy know packed ones, and have for a while"""

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
    pack: Callable[[float], None] = lambda now: None
    may_pack: Callable[[bool], None] = lambda may_pack: None


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
        self, standing: StandbyContext, copies: NodeLogCopies, state: ReplicaState, tell: Callable[..., None]
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
        self._peers = PeerLinks(
            standing.node, standing.shard, self._selector, standing.tls,
            PeerCallbacks(self._core.answered, self._core.unreachable), tell,
        )  # fmt: skip
        self._contact = AgentContact(
            standing.agent_path, standing.shard, self._selector, self._hear, self._agent_lost, tell
        )
        self._patience = PackingPatience(standing.shard)
        self._upkeep = Upkeep(standing, copies, self._patience)
        self._asked: list[tuple[int, Future[bytes]]] = []  # questions about the copies: (link that waits, its answer)
        self._view: View | None = None
        self._request = 0
        self._lead: fx.Lead | None = None

    def run(self, is_stopping: Callable[[], bool]) -> TakenOffice | None:
        """Until it leads, or `is_stopping`: None. raises: OSError, LogError: this copy cannot go on (R10)"""
        core = self._core
        while self._lead is None:
            if is_stopping():
                self._close()
                return None
            now = time.monotonic()
            self._contact.meet(now)
            next_deadline = min(core.next_deadline, self._port.next_deadline)
            wait = max(0.0, min(next_deadline, now + AGENT_SECONDS) - now)
            wait = 0.0 if self._upkeep.has_work else wait
            for key, _ in self._selector.select(wait):
                key.data()
            self._port.turn()
            began = time.monotonic()
            core.flush()
            if self._standing.disk is not None:
                self._standing.disk.took(time.monotonic() - began)
            core.tick(time.monotonic())
            self._carry_out()
            self._upkeep.turn(now)
            self._answer_inquiries()
            self._contact.report(time.monotonic(), self._report)
        return self._taken(self._lead)

    def _carry_out(self) -> None:
        while effects := self._core.take_effects():
            for effect in effects:
                if isinstance(effect, fx.Reply):
                    self._reply(effect)
                elif isinstance(effect, fx.Send):
                    epoch = self._core.record.epoch if self._core.record is not None else 0
                    self._peers.send(effect.peer, effect.message, epoch)
                elif isinstance(effect, fx.Serve):
                    if (link := self._port.maybe_link(effect.link)) is not None:
                        link.outbox.supply = self._copies.serve(effect.epoch, effect.partition, effect.have)
                        self._port.flush(effect.link)
                elif isinstance(effect, fx.ClaimShard):
                    self._claim(effect)
                elif isinstance(effect, fx.Alarm):
                    self._tell(effect.name, shard=self._standing.shard, why=effect.why)
                elif isinstance(effect, fx.Lead):
                    self._lead = effect

    # Links that others dial

    def _received(self, link: int, message: ReplicaMessage, raw: memoryview, now: float) -> None:
        self._upkeep.has_news = self._upkeep.has_news or not isinstance(message, Beat)
        self._core.received(link, message, raw, now)

    def _welcome(self, message: ReplicaMessage, uris: tuple[str, ...]) -> Refusal | str:
        """Whether a connection is for this process as it is now: replication alone. A stranger learns nothing of it."""
        standing, view = self._standing, self._view
        if not isinstance(message, Greeting):
            return Refusal("a connection begins with a greeting", TO_A_STRANGER)
        if view is None:
            return Refusal(f"{standing.node} has not met its cluster yet", TO_A_STRANGER)
        if message.cluster != view.cluster:
            return Refusal(f"this is cluster {view.cluster}, not {message.cluster[:NODE_CHARS_MAX]}", TO_A_STRANGER)
        if standing.tls is not None and (problem := standing.tls.names.maybe_problem(uris, message.node)):
            return Refusal(f"{message.node[:NODE_CHARS_MAX]}: {problem}", TO_A_STRANGER)
        if message.shard != standing.shard:
            why = f"this is shard {standing.shard}, not {message.shard}"
        elif message.level > FEATURE_LEVEL:
            why = f"this node knows feature level {FEATURE_LEVEL}, the other one has {message.level}: upgrade this one"
        elif message.kind != "replica" and (message.kind != COPY or standing.inquiries is None):
            why = f"{standing.node} does not lead shard {standing.shard}"
            return Refusal(why, why, is_ordinary=True)  # when a shard moves, others dial the next leader early
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
                link.outbox.put_bytes(answer.result())
                link.closes = True
                self._port.flush(number)

    def _reply(self, effect: fx.Reply) -> None:
        link = self._port.maybe_link(effect.link)
        if link is not None:
            link.send(effect.message)
            link.closes = link.closes or effect.is_last
            self._port.flush(effect.link)

    # The agent

    def _agent_lost(self) -> None:
        self._core.claimed(False, False, None, time.monotonic())  # it may have sent a claim, and answers no more

    def _hear(self, message: AgentMessage) -> None:
        now = time.monotonic()
        if isinstance(message, Seen):
            self._see(message.view, now)
        elif isinstance(message, Claimed) and message.request == self._request:
            self._core.claimed(message.won, message.known, message.now, now)
        elif isinstance(message, Order) and self._contact.agent is not None:
            why = f"{self._standing.node} does not lead shard {self._standing.shard} now: ask again"
            self._contact.agent.send(OrderResult(message.request, why))

    def _see(self, view: View, now: float) -> None:
        self._view = view
        self._peers.seen(view)
        shard = self._standing.shard
        if not self._standing.fits(view):
            raise LogError("the cluster has other partitions than this process has opened: it begins anew with those")
        if self._state.note_restored(view.restored):
            self._tell("cluster.copy_doubted", shard=shard, why="the disk was restored from an old copy")
        self._patience.seen(view, now)
        known = view.shards[shard] if shard < len(view.shards) else None
        self._core.seen(known if known is not None and known.revision else None, view.is_current, now)

    def _claim(self, effect: fx.ClaimShard) -> None:
        self._request += 1
        if not self._contact.claim(Claim(self._request, self._standing.shard, effect.revision, effect.record)):
            self._core.claimed(False, True, None, time.monotonic())

    def _report(self) -> Report:
        figures: dict[str, Any] = {
            "ends": self._copies.ends(), "promised": self._state.promised, "opened": self._state.opened,
            "hears_leader": self._core.hears_leader(time.monotonic()), "pid": os.getpid(),
        }  # fmt: skip
        return Report(self._standing.shard, "standby", self._state.promised, figures)

    # The end

    def _taken(self, lead: fx.Lead) -> TakenOffice:
        """Close what followers have dialled; what this process has dialled goes on, for beats."""
        assert self._view is not None and self._contact.agent is not None
        self._port.close()
        self._selector.close()
        tails = self._copies.tails()
        self._copies.close()
        return TakenOffice(lead, self._view, self._contact.agent, self._peers.give(), tails)

    def _close(self) -> None:
        self._port.close()
        self._peers.close()
        self._selector.close()
        self._copies.close()
        self._contact.close()


class Upkeep:
    """What a copy needs besides what its leader sends, behind the acknowledgements of a turn.

    has_work: there is more to be done at once; has_news: something else than a beat has come"""

    def __init__(self, standing: StandbyContext, copies: NodeLogCopies, patience: PackingPatience) -> None:
        self._standing, self._copies, self._patience = standing, copies, patience
        self.has_work = self.has_news = False
        self._work_at = self._give_back_at = 0.0

    def turn(self, now: float) -> None:
        """now: monotonic seconds, of the turn's beginning"""
        if self.has_work or self.has_news or now >= self._work_at:
            self.has_work, self.has_news = self._copies.work(), False
            self._work_at = now + WORK_SECONDS
        self._standing.scrub()
        self._standing.may_pack(self._patience.is_over(now))
        self._standing.pack(now)
        self._standing.look_after()
        if now >= self._give_back_at:
            self._give_back_at = now + GIVE_BACK_SECONDS
            self._standing.give_back()
