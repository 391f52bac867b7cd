"""A channel as one engine has it: what arrived, who holds it until when, what failed how often.

Sans-IO: time is an argument, in seconds of a clock that does not go back; what is to be done is in `drain()`. A message
is one of: ready for any consumer, held by one until its visible time is over, later (it failed and is to wait), behind
(an older one with its key is not done), dying (it failed too often: to be made a dead letter). One that is done is
gone. Memory: the window of the engine's session bounds the messages, `RECENT_MAX` the ids that are remembered as done.
Source: docs/reference/queues.md, "Delivery".

Refuses to know MQTT: `token` is what the engine acknowledges a message by."""
# compiled: hot

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from rumq.queues.rules.channel_counts import ChannelCounts
from rumq.queues.rules.definitions import ChannelSettings
from rumq.queues.rules.messages import Delivered
from rumq.queues.rules.names import MessageId

RECENT_MAX = 4096  # ids remembered as done, at least: they may come again where an acknowledgement was lost
HEAP_SLACK = 64
NO_BOUND = 2**62  # bytes
SHRINK_FROM = 64  # messages of a timer: one that was so large gives its memory back as they leave it
Arrived = tuple[Delivered, int, float]  # message, token, seconds for which it is of use


class EntryStage(Enum):
    READY = "ready"
    HELD = "held"
    LATER = "later"
    BEHIND = "behind"
    DYING = "dying"
    DONE = "done"


READY, HELD, LATER, BEHIND, DYING, DONE = EntryStage


class ChannelTimer:
    """When the stage of some messages, given or put off together, is over. entries: those that still wait for it"""

    __slots__ = ("at", "entries", "size")

    def __init__(self, at: float, entries: dict[ChannelEntry, None]) -> None:
        self.at, self.entries = at, entries
        self.size = len(entries)


class ChannelEntry:
    """A message that arrived. message: with `tries` as of its arrival; failed: tries so far; timer: ends its stage

    id, size: of the message; consumer: who holds it; expires_at: when nobody wants it any more"""

    __slots__ = ("consumer", "expires_at", "failed", "id", "message", "size", "stage", "timer", "token")

    def __init__(self, message: Delivered, token: int, failed: int, expires_at: float) -> None:
        self.message, self.token, self.failed, self.expires_at = message, token, failed, expires_at
        self.id, self.size = message.id, message.size
        self.stage = READY
        self.timer: ChannelTimer | None = None
        self.consumer: ChannelHolder | None = None


class ChannelHolder:
    """A consumer. credit: how many messages it may hold; held: by id, in the order in which they were given"""

    __slots__ = ("credit", "held")

    def __init__(self, credit: int) -> None:
        self.credit = credit
        self.held: dict[MessageId, ChannelEntry] = {}


@dataclass(slots=True)
class Effects:
    """tokens: to be acknowledged, in this order; failed: tries of these ids so far, 0: it is done

    dead: to be made dead letters, and then `buried`, or `unburied`"""

    tokens: list[int] = field(default_factory=list)
    failed: dict[MessageId, int] = field(default_factory=dict)
    dead: list[ChannelEntry] = field(default_factory=list)


class ChannelState:
    def __init__(self, settings: ChannelSettings, known_tries: Callable[[MessageId], int] = lambda _: 0) -> None:
        """known_tries: how often a message failed before it came here"""
        self._settings, self._known_tries = settings, known_tries
        self._is_ordered = settings.is_ordered
        self._entries: dict[MessageId, ChannelEntry] = {}
        self._ready: deque[ChannelEntry] = deque()
        self._lines: dict[str, deque[ChannelEntry]] = {}  # key -> messages behind the one that is not done
        self._timers: list[tuple[float, int, ChannelTimer]] = []  # stale ones are left out where they are found
        self._sequence = 0
        self._timed = 0  # timers that are not stale
        self.size = 0  # bytes of the messages that are not done
        self._recent, self._older = set[MessageId](), set[MessageId]()
        self._effects = Effects()
        self.holders: dict[ChannelHolder, None] = {}
        self.counts = ChannelCounts()

    def __len__(self) -> int:
        """Messages that are not done."""
        return len(self._entries)

    @property
    def ready(self) -> int:
        return len(self._ready)

    @property
    def in_flight(self) -> int:
        return sum(len(each.held) for each in self.holders)

    @property
    def next_at(self) -> float | None:
        """When `advance` has something to do; None: never, if nothing else happens."""
        while self._timers and not self._timers[0][2].entries:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    @property
    def has_effects(self) -> bool:
        return bool(self._effects.tokens or self._effects.failed or self._effects.dead)

    def drain(self) -> Effects:
        """What is to be done since the last call."""
        effects, self._effects = self._effects, Effects()
        return effects

    # Messages

    def arrived_all(self, messages: Iterable[Arrived], now: float, *, may_have_failed: bool = True) -> None:
        """As `arrived`, of each. may_have_failed: False: `known_tries` knows of none"""
        for message, token, expiry_seconds in messages:
            self._arrived(message, token, now + expiry_seconds, may_have_failed)

    def arrived(self, message: Delivered, token: int, now: float, expiry_seconds: float = float("inf")) -> bool:
        """A message came, maybe again. expiry_seconds: it is of use for so long. returns: whether it is new"""
        return self._arrived(message, token, now + expiry_seconds, True)

    def _arrived(self, message: Delivered, token: int, expires_at: float, may_have_failed: bool) -> bool:
        identity = message.id
        known = self._entries.get(identity)
        if known is not None:
            known.token = token
            return False
        if identity in self._recent or identity in self._older:
            self._effects.tokens.append(token)
            return False
        entry = ChannelEntry(message, token, self._known_tries(identity) if may_have_failed else 0, expires_at)
        self._entries[identity] = entry
        self.size += entry.size
        if self._is_ordered and message.key is not None:
            line = self._lines.get(message.key)
            if line is not None:
                entry.stage = BEHIND
                line.append(entry)
                return True
            self._lines[message.key] = deque()
        self._ready.append(entry)
        return True

    def forget(self) -> None:
        """The session is gone: every message that is not done is somebody else's now."""
        self._entries.clear()
        self.size = 0
        self._ready.clear()
        self._lines.clear()
        self._timers.clear()
        self._timed = 0
        self._effects.tokens.clear()
        self._effects.dead.clear()
        for holder in self.holders:
            holder.held.clear()

    # Consumers

    def join(self, credit: int) -> ChannelHolder:
        holder = ChannelHolder(credit)
        self.holders[holder] = None
        return holder

    def leave(self, holder: ChannelHolder, now: float) -> None:
        """What it held failed: who crashes over a message must not get it for ever."""
        self.advance(now)
        del self.holders[holder]
        for entry in reversed(list(holder.held.values())):
            self._fail(entry, 0.0, now)
        holder.held.clear()

    def give_back(self, holder: ChannelHolder, now: float) -> None:
        """What it holds it has not looked at: it is ready again, and no try is counted."""
        self.advance(now)
        for entry in reversed(list(holder.held.values())):
            self._release(entry)
            self._make_ready(entry)

    def take(self, holder: ChannelHolder, messages_max: int, now: float, bytes_max: int = NO_BOUND) -> list[Delivered]:
        """The oldest messages that are ready, as far as its credit goes; it holds them from now on.

        bytes_max: of them, about; one message always fits"""
        self.advance(now)
        taken: list[Delivered] = []
        entries: dict[ChannelEntry, None] = {}
        room = min(messages_max, holder.credit - len(holder.held))
        held, ready = holder.held, self._ready
        while ready and len(taken) < room:
            entry = ready[0]
            if taken and entry.size > bytes_max:
                break
            ready.popleft()
            if entry.expires_at <= now:
                self.counts.expired += 1
                self._finish(entry)
            elif self._is_spent(entry):
                self._die(entry)
            else:
                message, failed = entry.message, entry.failed
                entry.stage, entry.consumer = HELD, holder
                held[entry.id] = entry
                entries[entry] = None
                taken.append(message if not failed else message._replace(tries=failed + 1))
                bytes_max -= entry.size
        if entries:
            self._wait(entries, now + self._settings.visible_seconds)
        self.counts.delivered += len(taken)
        return taken

    def acknowledge(self, holder: ChannelHolder, ids: Iterable[MessageId], now: float) -> list[MessageId]:
        """returns: those that it does not hold"""
        self.advance(now)
        strangers: list[MessageId] = []
        held, done = holder.held, 0
        for each in ids:
            entry = held.pop(each, None)
            if entry is None:
                strangers.append(each)
                continue
            done += 1
            entry.consumer = None
            self._unwait(entry)
            self._finish(entry)
        self.counts.acknowledged += done
        return strangers

    def reject(
        self, holder: ChannelHolder, ids: Sequence[MessageId], delay_seconds: float | None, now: float
    ) -> list[MessageId]:
        """returns: as `acknowledge`. delay_seconds: None: the channel's"""
        self.advance(now)
        strangers: list[MessageId] = []
        delay = self._settings.retry_seconds if delay_seconds is None else delay_seconds
        # Backwards, for they go to the front of those that are ready one by one.
        for each in reversed(ids):
            entry = holder.held.get(each)
            if entry is None:
                strangers.append(each)
                continue
            self.counts.rejected += 1
            self._release(entry)
            self._fail(entry, delay, now)
        return strangers[::-1]

    def extend(self, holder: ChannelHolder, ids: Iterable[MessageId], seconds: float, now: float) -> list[MessageId]:
        """Hold these for so long from now on. returns: as `acknowledge`"""
        self.advance(now)
        strangers: list[MessageId] = []
        entries: dict[ChannelEntry, None] = {}
        for each in ids:
            entry = holder.held.get(each)
            if entry is None:
                strangers.append(each)
            else:
                self._unwait(entry)
                entries[entry] = None
        if entries:
            self._wait(entries, now + seconds)
        return strangers

    # Time

    def advance(self, now: float) -> bool:
        """Give back what was held, or was to wait, until now. returns: whether something was"""
        changed = False
        while self._timers and self._timers[0][0] <= now:
            for entry in list(heapq.heappop(self._timers)[2].entries):
                changed = True
                self._unwait(entry)
                if entry.stage is HELD:
                    assert entry.consumer is not None
                    self._release(entry)
                    self.counts.overdue += 1
                    self._fail(entry, 0.0, now)
                else:
                    self._make_ready(entry)
        return changed

    # Dead letters

    def buried(self, entries: Iterable[ChannelEntry]) -> None:
        """They are dead letters now, as safe as any message."""
        for entry in entries:
            if self._entries.get(entry.id) is entry:
                self.counts.dead += 1
                self._finish(entry)

    def unburied(self, entries: Iterable[ChannelEntry], delay_seconds: float, now: float) -> None:
        """They could not be made dead letters: try again later."""
        for entry in entries:
            if self._entries.get(entry.id) is entry:
                self._later(entry, now + delay_seconds)

    # A message's way

    def _is_spent(self, entry: ChannelEntry) -> bool:
        return 0 < self._settings.tries_max <= entry.failed

    def _release(self, entry: ChannelEntry) -> None:
        if entry.consumer is not None:
            entry.consumer.held.pop(entry.id, None)
            entry.consumer = None
            self._unwait(entry)

    def _later(self, entry: ChannelEntry, until: float) -> None:
        entry.stage = LATER
        self._wait({entry: None}, until)

    def _wait(self, entries: dict[ChannelEntry, None], until: float) -> None:
        """Of messages that wait for nothing else; one timer for all of them."""
        timer = ChannelTimer(until, entries)
        for entry in entries:
            entry.timer = timer
        self._timed += 1
        self._sequence += 1
        heapq.heappush(self._timers, (until, self._sequence, timer))
        if len(self._timers) > 2 * self._timed + HEAP_SLACK:
            self._timers = [each for each in self._timers if each[2].entries]
            heapq.heapify(self._timers)

    def _unwait(self, entry: ChannelEntry) -> None:
        timer = entry.timer
        if timer is None:
            return
        entry.timer = None
        entries = timer.entries
        del entries[entry]
        if not entries:
            self._timed -= 1
        elif timer.size > SHRINK_FROM and 4 * len(entries) < timer.size:
            timer.entries, timer.size = dict(entries), len(entries)

    def _fail(self, entry: ChannelEntry, delay_seconds: float, now: float) -> None:
        if entry.consumer is not None:  # its consumer is leaving
            entry.consumer = None
            self._unwait(entry)
        entry.failed += 1
        self._effects.failed[entry.id] = entry.failed
        if self._is_spent(entry):
            self._die(entry)
        elif delay_seconds > 0:
            self._later(entry, now + delay_seconds)
        else:
            self._make_ready(entry)

    def _make_ready(self, entry: ChannelEntry) -> None:
        entry.stage = READY
        self._ready.appendleft(entry)

    def _die(self, entry: ChannelEntry) -> None:
        entry.stage = DYING
        self._effects.dead.append(entry)

    def _finish(self, entry: ChannelEntry) -> None:
        """Nothing more is to be done with it but its acknowledgement."""
        entry.stage = DONE
        identity = entry.id
        del self._entries[identity]
        self.size -= entry.size
        self._effects.tokens.append(entry.token)
        if entry.failed:
            self._effects.failed[identity] = 0
        self._recent.add(identity)
        if len(self._recent) >= RECENT_MAX:
            self._recent, self._older = set(), self._recent
        key = entry.message.key
        if key is None or not self._is_ordered:
            return
        line = self._lines[key]
        if line:
            following = line.popleft()
            following.stage = READY
            self._ready.append(following)
        else:
            del self._lines[key]
