"""Whose turn it is: each address in turn and each of its users in turn, a bounded number of all at once.

Who sends many only makes itself wait, and when too many wait, the newest of who has the most goes. Who was right not
long ago comes before all others. An address that is being held back for wrong answers has a turn now and then, so that
who is right there comes in too; one of its users that is, has none until some of them have gone out. Knows no thread;
time is an argument."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
WAITING_MAX, LANE_MAX, USER_MAX, KNOWN_MAX = 1_000, 64, 64, 4_000
HELD_MAX, USER_HELD_MAX = 32, 4
USER_KNOWN_MAX = 4  # that come first at once; further ones have their turn among the others
HELD_TURN_SECONDS = 0.2


class Bounds(NamedTuple):
    """Of what waits: of all, of an address, of a user wherever it is; known: of those who come first"""

    waiting: int = WAITING_MAX
    lane: int = LANE_MAX
    user: int = USER_MAX
    known: int = KNOWN_MAX


USUAL, UNBOUNDED = Bounds(), Bounds(*[1 << 60] * 4)


class Lane(Generic[T]):
    """What waits of one address. users: in the order of their turns"""

    __slots__ = ("count", "users")

    def __init__(self) -> None:
        self.users: OrderedDict[str, deque[T]] = OrderedDict()
        self.count = 0


class FairQueue(Generic[T]):
    """At most `running_max` items are out at once."""

    def __init__(
        self,
        running_max: int,
        bounds: Bounds = USUAL,
        shed: Callable[[T], None] = lambda _: None,
    ) -> None:
        """shed: is called with an item that had to go for another one"""
        self.running_max = running_max
        self.running = 0
        self.waiting = 0
        self._bounds, self._shed = bounds, shed
        self._known: deque[tuple[tuple[str, str], T]] = deque()
        self._known_of: Counter[tuple[str, str]] = Counter()
        self._lanes: OrderedDict[str, Lane[T]] = OrderedDict()  # in the order of their turns
        self._of_user: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._held_user: Counter[tuple[str, str]] = Counter()
        self._not_before: dict[str, float] = {}  # of addresses that are held back

    def put(self, address: str, item: T, user: str = "", *, known: bool = False) -> bool:
        """known: it was right not long ago; False: too many wait already, and not because of others"""
        if known:
            key = address, user
            if len(self._known) < self._bounds.known and self._known_of[key] < USER_KNOWN_MAX:
                self._known.append((key, item))
                self._known_of[key] += 1
                self.waiting += 1
                return True
        if user and self._of_user[user] >= self._bounds.user:
            return False
        lane = self._lanes.get(address)
        if lane is not None and lane.count >= self._bounds.lane:
            of_users = lane.users
            longest = max(of_users, key=lambda name: len(of_users[name]))
            if len(of_users[longest]) <= len(of_users.get(user, ())) + 1:
                return False
            self._drop_newest(address, longest)
        elif self.waiting >= self._bounds.waiting:
            largest = max(self._lanes, key=lambda name: self._lanes[name].count, default=None)
            if largest is None or self._lanes[largest].count <= (lane.count if lane is not None else 0) + 1:
                return False
            users = self._lanes[largest].users
            self._drop_newest(largest, max(users, key=lambda name: len(users[name])))
        lane = self._lanes.setdefault(address, Lane())
        lane.users.setdefault(user, deque()).append(item)
        self._count(address, lane, user, 1)
        return True

    def maybe_next(self, now: float = 0.0) -> T | None:
        """The item whose turn it is, if one more may be out; `finished` when it is done."""
        if self.running >= self.running_max:
            return None
        if self._known:
            self.running += 1
            self.waiting -= 1
            key, item = self._known.popleft()
            self._known_of[key] -= 1
            if not self._known_of[key]:
                del self._known_of[key]
            return item
        for _ in range(len(self._lanes)):
            address, lane = next(iter(self._lanes.items()))
            self._lanes.move_to_end(address)
            if self._held[address] >= HELD_MAX and now < self._not_before.get(address, 0.0):
                continue
            for _ in range(len(lane.users)):
                user, items = next(iter(lane.users.items()))
                lane.users.move_to_end(user)
                if user and self._held_user[address, user] >= USER_HELD_MAX:
                    continue
                if address in self._not_before:
                    self._not_before[address] = now + HELD_TURN_SECONDS
                item = items.popleft()
                self._count(address, lane, user, -1)
                self.running += 1
                return item
        return None

    def finished(self) -> None:
        self.running -= 1

    def hold(self, address: str, user: str = "", now: float = 0.0) -> None:
        """A refusal for a user at the address waits to go out."""
        self._held[address] += 1
        self._held_user[address, user] += 1
        if self._held[address] == HELD_MAX:
            self._not_before[address] = now + HELD_TURN_SECONDS

    def release(self, address: str, user: str = "") -> None:
        """... and has gone."""
        for held, key in ((self._held, address), (self._held_user, (address, user))):
            held[key] -= 1  # type: ignore[index]
            if held[key] <= 0:  # type: ignore[index]
                del held[key]
        if self._held[address] < HELD_MAX:
            self._not_before.pop(address, None)

    def _drop_newest(self, address: str, user: str) -> None:
        lane = self._lanes[address]
        item = lane.users[user].pop()
        self._count(address, lane, user, -1)
        self._shed(item)

    def _count(self, address: str, lane: Lane[T], user: str, change: int) -> None:
        self.waiting += change
        lane.count += change
        self._of_user[user] += change
        if not self._of_user[user]:
            del self._of_user[user]
        if not lane.users[user]:
            del lane.users[user]
        if not lane.count:
            del self._lanes[address]
