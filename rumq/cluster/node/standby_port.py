"""The port of a shard that does not lead: accepts other nodes' links, and takes nothing of strangers but a greeting.

Before its greeting a connection has GREETING_BYTES_MAX and GREETING_SECONDS_MAX, TLS included; so many may wait as
leave descriptors to the log and to what this process dials, and the address with the most of them makes room.
Handshakes have a bounded part of each turn, and addresses take turns. Whether a greeting is welcome is decided by
whoever owns this."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from rumq.auth.quota_holder import holder_of
from rumq.cluster.connections.dial import tune
from rumq.cluster.links.greeting import GreetingRefused
from rumq.cluster.links.greeting_queue import GREETING_SECONDS_MAX, GreetingQueue
from rumq.cluster.links.refusal_log import RefusalLog
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.replication.messages import ReplicaMessage

ACCEPTS_A_TURN = 64
WORK_SECONDS_A_TURN = 0.005  # for connections that have not greeted: a TLS handshake costs a millisecond
PAUSE_SECONDS = 0.25  # after accept(2) has failed
NODE_LINKS_MAX = 16  # from one node; its oldest makes room
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Refusal(NamedTuple):
    """why: for the operator of this node; told: to the other end

    is_ordinary: of a node that looks for the leader; the operator hears nothing of it"""

    why: str
    told: str
    is_ordinary: bool = False


Welcome = Callable[[ReplicaMessage, tuple[str, ...]], Refusal | str]
Received = Callable[[int, ReplicaMessage, memoryview, float], None]


class IncomingLink:
    """A connection that another process has dialled. peer: address and port; node: id of its greeting, empty before"""

    __slots__ = ("holder", "link", "node", "number", "peer", "until")

    def __init__(self, number: int, link: FrameLink, address: tuple[str, int], now: float) -> None:
        self.number, self.link = number, link
        self.peer, self.holder = f"{address[0]}:{address[1]}", holder_of(address[0])
        self.until = now + GREETING_SECONDS_MAX
        self.node = ""


class LinkOwner(NamedTuple):
    """welcome: gives the node's id for a link's first message and its certificate's URIs, or why it is refused
    received: takes what follows: number of the link, message, raw bytes, monotonic seconds
    lost: told of the end of a link that was welcome, and whether it has ended at the other end
    greeted: takes number, first message and its raw bytes of a link that was welcome"""

    welcome: Welcome
    received: Received
    lost: Callable[..., None]
    greeted: Callable[[int, ReplicaMessage, memoryview], None] = lambda number, message, raw: None


class StandbyPort:
    """owner: of the links that have greeted; tell: takes events"""

    def __init__(
        self, listener: socket.socket, selector: selectors.BaseSelector, tls: LinkTls | None, greetings_max: int,
        owner: LinkOwner, tell: Callable[..., None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._listener, self._selector, self._tls = listener, selector, tls
        self._owner, self._tell, self._clock = owner, tell, clock
        self._links: dict[int, IncomingLink] = {}
        self._greeting: GreetingQueue[int] = GreetingQueue(greetings_max)
        self._deadlines: dict[IncomingLink, None] = {}  # of those that have not greeted, the earliest first
        self._ready: dict[str, dict[int, None]] = {}  # not greeted, and something came: by address, in turns
        self._refusals = RefusalLog(tell)
        self._next_link = 0
        self._paused_until: float | None = None
        listener.setblocking(False)
        selector.register(listener, READ, self._accept)

    def __len__(self) -> int:
        return len(self._links)

    @property
    def next_deadline(self) -> float:
        """When `turn` has something to do though nothing came."""
        until = next((each.until for each in self._deadlines), float("inf"))
        return until if self._paused_until is None else min(until, self._paused_until)

    def maybe_link(self, number: int) -> FrameLink | None:
        found = self._links.get(number)
        return found.link if found is not None else None

    def flush(self, number: int) -> None:
        """Send what was queued for a link, and see whether it has ended."""
        found = self._links.get(number)
        if found is not None:
            found.link.flush()
            self._look(found)

    def turn(self) -> None:
        """Behind each wait of the selector: serve those that have not greeted, as far as their part of a turn goes."""
        began = self._clock()
        while self._ready and self._clock() - began < WORK_SECONDS_A_TURN:
            holder, numbers = next(iter(self._ready.items()))
            number = next(iter(numbers))
            del self._ready[holder], numbers[number]
            if numbers:
                self._ready[holder] = numbers  # behind the other addresses
            if (found := self._links.get(number)) is not None:
                self._read(found)
        now = self._clock()
        while self._deadlines and (late := next(iter(self._deadlines))).until <= now:
            self._refuse(late, f"no greeting within {GREETING_SECONDS_MAX:g} s")
        self._refusals.look(now)
        if self._paused_until is not None and now >= self._paused_until:
            self._paused_until = None
            self._selector.register(self._listener, READ, self._accept)

    def close(self) -> None:
        """End all links; the socket stays, for whoever serves here next."""
        for each in self._links.values():
            each.link.close()
        self._links.clear()

    # Accepting

    def _accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as fault:
                if fault.errno not in EXHAUSTED:
                    continue  # the connection's fault: it is gone
                if (loser := self._greeting.drop()) is not None:
                    self._refuse(self._links[loser], "its descriptor was needed")
                    continue
                self._tell("listener.accept_failed", why=fault.strerror, retry_seconds=PAUSE_SECONDS)
                self._selector.unregister(self._listener)
                self._paused_until = self._clock() + PAUSE_SECONDS
                return
            self._take(sock, address)

    def _take(self, sock: socket.socket, address: tuple[str, int]) -> None:
        now = self._clock()
        try:
            tune(sock)
            link = FrameLink(sock, self._tls)
        except OSError:
            sock.close()  # it is gone already
            return
        self._next_link += 1
        number = self._next_link
        made = self._links[number] = IncomingLink(number, link, address, now)
        self._deadlines[made] = None
        loser = self._greeting.add(number, made.holder)
        if loser is not None:
            self._refuse(self._links[loser], "too many connections have not greeted")

        def ready() -> None:
            if number in self._greeting:
                self._ready.setdefault(made.holder, {})[number] = None
            else:
                self._read(made)

        self._selector.register(link.fd, READ, ready)

    # Reading

    def _read(self, each: IncomingLink) -> None:
        for message, raw in each.link.read():
            if each.node:
                self._owner.received(each.number, message, raw, self._clock())
            elif self._greets(each, message):
                self._owner.greeted(each.number, message, raw)
            else:
                break
        each.link.flush()
        self._look(each)
        while not each.node and self._greeting.hold(each.number, each.link.buffered):
            if (loser := self._greeting.drop()) is None:
                break
            self._refuse(self._links[loser], "too many bytes of greetings wait")

    def _greets(self, each: IncomingLink, message: ReplicaMessage) -> bool:
        """Whether the first message of a link is welcome."""
        found = self._owner.welcome(message, each.link.handshake.uris)
        if isinstance(found, Refusal):
            if not found.is_ordinary:
                self._refusals.refused(each.peer, found.why, self._clock())
            each.link.send(GreetingRefused(found.told))
            each.link.flush()
            each.link.close()  # whether it has taken the answer or not: nothing more of it is read
            each.link.why = ""  # what was behind the greeting is nobody's fault
            return False
        self._no_stranger(each)
        same = [other for other in self._links.values() if other.node == found]
        if len(same) >= NODE_LINKS_MAX:
            self._refuse(min(same, key=lambda other: other.number), "the same node has newer links")
        each.node = found
        each.link.proved()
        return True

    def _no_stranger(self, each: IncomingLink) -> None:
        """It has greeted, or ended."""
        self._greeting.discard(each.number)
        self._deadlines.pop(each, None)

    def _refuse(self, each: IncomingLink, why: str) -> None:
        self._refusals.refused(each.peer, why, self._clock())
        each.link.close()
        self._look(each)

    def _look(self, each: IncomingLink) -> None:
        """Wait for the socket to take more only while there is more; forget a link that has ended."""
        link = each.link
        if not link.closed:
            key = self._selector.get_key(link.fd)
            wanted = READ | WRITE if link.has_output else READ
            if key.events != wanted:
                self._selector.modify(link.fd, wanted, key.data)
        elif self._links.pop(each.number, None) is not None:
            self._selector.unregister(link.fd)
            if each.node:
                self._owner.lost(each.number, self._clock(), ended_there=link.ended_there)
                return
            self._no_stranger(each)
            if link.why:
                self._refusals.refused(each.peer, link.why, self._clock())
