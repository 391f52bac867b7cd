"""A channel as one engine has it: what arrived, who holds it until when, what failed how often.

Sans-IO: time is an argument, in seconds of a clock that does not go back; what is to be done is in `drain()`. A message
is one of: ready for any consumer, held by one until its visible time is over, later (it failed and is to wait), behind
(an older one with its key is not done), dying (it failed too often: to be made a dead letter). One that is done is
gone. Memory: the window of the engine's session bounds the messages, `RECENT_MAX` the ids that are remembered as done.
Source: docs/reference/queues.md, "Delivery".

Refuses to know MQTT: `token` is what the engine acknowledges a message by."""
# compiled: warm

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from rumq.queues.rules.definitions import ChannelSettings
from rumq.queues.rules.messages import Delivered
from rumq.queues.rules.names import MessageId

RECENT_MAX = 4096  # ids remembered as done: they may come again where an acknowledgement was lost
HEAP_SLACK = 64


class Stage(Enum):
    READY = "ready"
    HELD = "held"
    LATER = "later"
    BEHIND = "behind"
    DYING = "dying"
    DONE = "done"


class ChannelEntry:
    """A message that arrived. message: with `tries` as of its arrival; failed: tries so far; at: when its stage is over

    consumer: who holds it; expires_at: when nobody wants it any more"""

    __slots__ = ("at", "consumer", "expires_at", "failed", "message", "stage", "token")

    def __init__(self, message: Delivered, token: int, failed: int, expires_at: float) -> None:
        self.message, self.token, self.failed, self.expires_at = message, token, failed, expires_at
        self.stage = Stage.READY
        self.at = 0.0
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


@dataclass(slots=True)
class ChannelCounts:
    """Messages since the state was made."""

    delivered: int = 0
    acknowledged: int = 0
    rejected: int = 0
    overdue: int = 0
    expired: int = 0
    dead: int = 0


class ChannelState:
    def __init__(self, settings: ChannelSettings, known_tries: Callable[[MessageId], int] = lambda _: 0) -> None:
        """known_tries: how often a message failed before it came here"""
        self._settings, self._known_tries = settings, known_tries
        self._entries: dict[MessageId, ChannelEntry] = {}
        self._ready: deque[ChannelEntry] = deque()
        self._lines: dict[str, deque[ChannelEntry]] = {}  # key -> messages behind the one that is not done
        self._timers: list[tuple[float, int, ChannelEntry]] = []  # stale ones are left out where they are found
        self._sequence = 0
        self._timed = 0  # entries held or later
        self.size = 0  # bytes of the messages that are not done
        self._recent: OrderedDict[MessageId, None] = OrderedDict()
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
        while self._timers and self._is_stale(self._timers[0]):
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

    def arrived(self, message: Delivered, token: int, now: float, expiry_seconds: float = float("inf")) -> bool:
        """A message came, maybe again. expiry_seconds: it is of use for so long. returns: whether it is new"""
        known = self._entries.get(message.id)
        if known is not None:
            known.token = token
            return False
        if message.id in self._recent:
            self._effects.tokens.append(token)
            return False
        entry = ChannelEntry(message, token, self._known_tries(message.id), now + expiry_seconds)
        self._entries[message.id] = entry
        self.size += message.size
        key = message.key if self._settings.is_ordered else None
        if key is not None:
            line = self._lines.get(key)
            if line is not None:
                entry.stage = Stage.BEHIND
                line.append(entry)
                return True
            self._lines[key] = deque()
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

    def take(self, holder: ChannelHolder, messages_max: int, now: float, bytes_max: int = 1 << 62) -> list[Delivered]:
        """The oldest messages that are ready, as far as its credit goes; it holds them from now on.

        bytes_max: of them, about; one message always fits"""
        self.advance(now)
        taken: list[Delivered] = []
        room = min(messages_max, holder.credit - len(holder.held))
        while self._ready and len(taken) < room:
            size = self._ready[0].message.size
            if taken and size > bytes_max:
                break
            entry = self._ready.popleft()
            if entry.expires_at <= now:
                self.counts.expired += 1
                self._finish(entry)
            elif self._is_spent(entry):
                self._die(entry)
            else:
                self._hold(entry, holder, now + self._settings.visible_seconds)
                taken.append(entry.message._replace(tries=entry.failed + 1))
                bytes_max -= size
        self.counts.delivered += len(taken)
        return taken

    def acknowledge(self, holder: ChannelHolder, ids: Iterable[MessageId], now: float) -> list[MessageId]:
        """returns: those that it does not hold"""
        self.advance(now)
        strangers: list[MessageId] = []
        for each in ids:
            entry = holder.held.get(each)
            if entry is None:
                strangers.append(each)
                continue
            self.counts.acknowledged += 1
            self._release(entry)
            self._finish(entry)
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
        for each in ids:
            entry = holder.held.get(each)
            if entry is None:
                strangers.append(each)
            else:
                self._wait(entry, now + seconds)
        return strangers

    # Time

    def advance(self, now: float) -> bool:
        """Give back what was held, or was to wait, until now. returns: whether something was"""
        changed = False
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)
            if self._is_stale(timer):
                continue
            entry = timer[2]
            changed = True
            if entry.stage is Stage.HELD:
                assert entry.consumer is not None
                del entry.consumer.held[entry.message.id]
                self._release(entry)
                self.counts.overdue += 1
                self._fail(entry, 0.0, now)
            else:
                self._timed -= 1
                self._make_ready(entry)
        return changed

    # Dead letters

    def buried(self, entries: Iterable[ChannelEntry]) -> None:
        """They are dead letters now, as safe as any message."""
        for entry in entries:
            if self._entries.get(entry.message.id) is entry:
                self.counts.dead += 1
                self._finish(entry)

    def unburied(self, entries: Iterable[ChannelEntry], delay_seconds: float, now: float) -> None:
        """They could not be made dead letters: try again later."""
        for entry in entries:
            if self._entries.get(entry.message.id) is entry:
                self._later(entry, now + delay_seconds)

    # A message's way

    def _is_spent(self, entry: ChannelEntry) -> bool:
        return 0 < self._settings.tries_max <= entry.failed

    def _hold(self, entry: ChannelEntry, holder: ChannelHolder, until: float) -> None:
        entry.stage, entry.consumer = Stage.HELD, holder
        holder.held[entry.message.id] = entry
        self._timed += 1
        self._wait(entry, until)

    def _release(self, entry: ChannelEntry) -> None:
        if entry.consumer is not None:
            entry.consumer.held.pop(entry.message.id, None)
            entry.consumer = None
            self._timed -= 1

    def _later(self, entry: ChannelEntry, until: float) -> None:
        entry.stage = Stage.LATER
        self._timed += 1
        self._wait(entry, until)

    def _wait(self, entry: ChannelEntry, until: float) -> None:
        entry.at = until
        self._sequence += 1
        heapq.heappush(self._timers, (until, self._sequence, entry))
        if len(self._timers) > 2 * self._timed + HEAP_SLACK:
            self._timers = [timer for timer in self._timers if not self._is_stale(timer)]
            heapq.heapify(self._timers)

    @staticmethod
    def _is_stale(timer: tuple[float, int, ChannelEntry]) -> bool:
        at, _, entry = timer
        return entry.stage not in (Stage.HELD, Stage.LATER) or entry.at != at

    def _fail(self, entry: ChannelEntry, delay_seconds: float, now: float) -> None:
        if entry.consumer is not None:  # its consumer is leaving
            entry.consumer = None
            self._timed -= 1
        entry.failed += 1
        self._effects.failed[entry.message.id] = entry.failed
        if self._is_spent(entry):
            self._die(entry)
        elif delay_seconds > 0:
            self._later(entry, now + delay_seconds)
        else:
            self._make_ready(entry)

    def _make_ready(self, entry: ChannelEntry) -> None:
        entry.stage = Stage.READY
        self._ready.appendleft(entry)

    def _die(self, entry: ChannelEntry) -> None:
        entry.stage = Stage.DYING
        self._effects.dead.append(entry)

    def _finish(self, entry: ChannelEntry) -> None:
        """Nothing more is to be done with it but its acknowledgement."""
        entry.stage = Stage.DONE
        identity = entry.message.id
        del self._entries[identity]
        self.size -= entry.message.size
        self._effects.tokens.append(entry.token)
        if entry.failed:
            self._effects.failed[identity] = 0
        self._recent[identity] = None
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        key = entry.message.key if self._settings.is_ordered else None
        if key is None:
            return
        line = self._lines[key]
        if line:
            following = line.popleft()
            following.stage = Stage.READY
            self._ready.append(following)
        else:
            del self._lines[key]
