"""Which ids messages got that were pushed here: the n-th acknowledged one of a connection and topic is the n-th record.

What is not found in time has no id that could be told; its record may come yet, and must not be taken for a later
one's. No files, no clock: times are arguments, in seconds."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

Found = Callable[[int | None], None]  # with the number in the topic, from 0; None: it is not known
Key = tuple[str, str]  # client id of the connection, topic
EARLY_MAX = 10_000  # connections and topics whose records were seen before their acknowledgements


class PushIds:
    """waiting: messages whose records were not found yet"""

    def __init__(self) -> None:
        self.waiting = 0
        self._wanted: OrderedDict[Key, deque[tuple[Found, float]]] = OrderedDict()
        self._early: defaultdict[Key, deque[int]] = defaultdict(deque)
        self._given_up: Counter[Key] = Counter()

    def expect(self, client_id: str, topic: str, found: Found | None, deadline: float) -> None:
        """A message was acknowledged. found: None: nobody asks, but its record comes all the same"""
        key = client_id, topic
        early = self._early.get(key)
        if early:
            number = early.popleft()
            if not early:
                del self._early[key]
            if found is not None:
                found(number)
            return
        self._wanted.setdefault(key, deque()).append((found or ignore, deadline))
        self.waiting += 1

    def see(self, numbers: Mapping[Key, Iterable[int]]) -> None:
        """Records of our connections, in the log's order."""
        for key, those in numbers.items():
            for number in those:
                self._see(key, number)

    def _see(self, key: Key, number: int) -> None:
        if self._given_up[key]:
            self._given_up[key] -= 1
            return
        wanted = self._wanted.get(key)
        if not wanted:
            self._early[key].append(number)
            if len(self._early) > EARLY_MAX:
                del self._early[next(iter(self._early))]
            return
        found, _ = wanted.popleft()
        self.waiting -= 1
        if not wanted:
            del self._wanted[key]
        found(number)

    def give_up(self, now: float) -> int:
        """Those whose time is over get none. returns: how many"""
        count = 0
        for key, wanted in list(self._wanted.items()):
            while wanted and wanted[0][1] <= now:
                found, _ = wanted.popleft()
                self._given_up[key] += 1
                self.waiting -= 1
                count += 1
                found(None)
            if not wanted:
                del self._wanted[key]
        return count

    def forget(self, client_id: str) -> None:
        """The connection has ended: nothing more of it is acknowledged."""
        for key in [key for key in self._early if key[0] == client_id]:
            del self._early[key]
        for key in [key for key in self._given_up if key[0] == client_id and key not in self._wanted]:
            del self._given_up[key]


def ignore(number: int | None) -> None: ...
