"""Fair queue: round robin over addresses, and over the users of each; a bounded number of items run at once.

When too many wait, the newest item of the largest address is dropped. Items with priority (a recent successful login)
come first. An address in back-off for failed logins gets a turn now and then, so that correct logins from there
succeed too; a user in back-off gets none until some of its refusals have gone out. Time is an argument."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
K = TypeVar("K")
WAITING_MAX, ADDRESS_MAX, USER_MAX, PRIORITY_MAX = 1_000, 64, 64, 4_000
BACKOFF_MAX, USER_BACKOFF_MAX = 32, 4  # delayed refusals that put an address, or a user there, into back-off
USER_PRIORITY_MAX = 4  # items with priority at once; further ones wait among the others
BACKOFF_TURN_SECONDS = 0.2


class Bounds(NamedTuple):
    """Items that may wait: in all, of an address, of a user at any address, with priority."""

    waiting: int = WAITING_MAX
    address: int = ADDRESS_MAX
    user: int = USER_MAX
    priority: int = PRIORITY_MAX


USUAL, UNBOUNDED = Bounds(), Bounds(*[1 << 60] * 4)


class AddressQueue(Generic[T]):
    """The waiting items of one address. users: in the order of their turns"""

    __slots__ = ("count", "users")

    def __init__(self) -> None:
        self.users: OrderedDict[str, deque[T]] = OrderedDict()
        self.count = 0


class FairQueue(Generic[T]):
    """At most `running_max` items run at once."""

    def __init__(
        self,
        running_max: int,
        bounds: Bounds = USUAL,
        shed: Callable[[T], None] = lambda _: None,
    ) -> None:
        """shed: called with an item that was dropped for another one"""
        self.running_max = running_max
        self.running = 0
        self.waiting = 0
        self._bounds, self._shed = bounds, shed
        self._priority: deque[tuple[tuple[str, str], T]] = deque()
        self._priority_of: Counter[tuple[str, str]] = Counter()
        self._addresses: OrderedDict[str, AddressQueue[T]] = OrderedDict()  # in the order of their turns
        self._of_user: Counter[str] = Counter()
        self._backoff: Counter[str] = Counter()
        self._user_backoff: Counter[tuple[str, str]] = Counter()
        self._not_before: dict[str, float] = {}  # of addresses in back-off

    def put(self, address: str, item: T, user: str = "", *, priority: bool = False) -> bool:
        """False: too many items of this address or user wait already, or it has the most"""
        if priority:
            key = address, user
            if len(self._priority) < self._bounds.priority and self._priority_of[key] < USER_PRIORITY_MAX:
                self._priority.append((key, item))
                self._priority_of[key] += 1
                self.waiting += 1
                return True
        if user and self._of_user[user] >= self._bounds.user:
            return False
        queue = self._addresses.get(address)
        if queue is not None and queue.count >= self._bounds.address:
            of_users = queue.users
            longest = max(of_users, key=lambda name: len(of_users[name]))
            if len(of_users[longest]) <= len(of_users.get(user, ())) + 1:
                return False
            self._drop_newest(address, longest)
        elif self.waiting >= self._bounds.waiting:
            largest = max(self._addresses, key=lambda name: self._addresses[name].count, default=None)
            if largest is None or self._addresses[largest].count <= (queue.count if queue is not None else 0) + 1:
                return False
            users = self._addresses[largest].users
            self._drop_newest(largest, max(users, key=lambda name: len(users[name])))
        queue = self._addresses.setdefault(address, AddressQueue())
        queue.users.setdefault(user, deque()).append(item)
        self._count(address, queue, user, 1)
        return True

    def maybe_next(self, now: float = 0.0) -> T | None:
        """The item whose turn it is, if one more may run; call `finished` when it has."""
        if self.running >= self.running_max:
            return None
        if self._priority:
            self.running += 1
            self.waiting -= 1
            key, item = self._priority.popleft()
            decrement(self._priority_of, key)
            return item
        for _ in range(len(self._addresses)):
            address, queue = next(iter(self._addresses.items()))
            self._addresses.move_to_end(address)
            if self._backoff[address] >= BACKOFF_MAX and now < self._not_before.get(address, 0.0):
                continue
            for _ in range(len(queue.users)):
                user, items = next(iter(queue.users.items()))
                queue.users.move_to_end(user)
                if user and self._user_backoff[address, user] >= USER_BACKOFF_MAX:
                    continue
                if address in self._not_before:
                    self._not_before[address] = now + BACKOFF_TURN_SECONDS
                item = items.popleft()
                self._count(address, queue, user, -1)
                self.running += 1
                return item
        return None

    def finished(self) -> None:
        self.running -= 1

    def begin_backoff(self, address: str, user: str = "", now: float = 0.0) -> None:
        """A refusal for a user at the address is being delayed."""
        self._backoff[address] += 1
        self._user_backoff[address, user] += 1
        if self._backoff[address] == BACKOFF_MAX:
            self._not_before[address] = now + BACKOFF_TURN_SECONDS

    def end_backoff(self, address: str, user: str = "") -> None:
        """The refusal has gone out."""
        decrement(self._backoff, address)
        decrement(self._user_backoff, (address, user))
        if self._backoff[address] < BACKOFF_MAX:
            self._not_before.pop(address, None)

    def _drop_newest(self, address: str, user: str) -> None:
        queue = self._addresses[address]
        item = queue.users[user].pop()
        self._count(address, queue, user, -1)
        self._shed(item)

    def _count(self, address: str, queue: AddressQueue[T], user: str, change: int) -> None:
        self.waiting += change
        queue.count += change
        self._of_user[user] += change
        if not self._of_user[user]:
            del self._of_user[user]
        if not queue.users[user]:
            del queue.users[user]
        if not queue.count:
            del self._addresses[address]


def decrement(counts: Counter[K], key: K) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]
