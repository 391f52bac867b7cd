"""Which ids messages got that were pushed here: the n-th acknowledged one of a connection and topic is the n-th record.

What is not found in time has no id that could be told; its record may come yet, and must not be taken for a later
one's. Messages of one topic that were acknowledged together are one run, and so are records with numbers in a row. No
files, no clock: times are arguments, in seconds."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

Found = Callable[[int, int | None], None]  # so many have numbers in the topic from that one on; None: none is known
Key = tuple[str, str]  # client id of the connection, topic
Run = tuple[int, int]  # numbers from 0: the first, one behind the last
EARLY_MAX = 10_000  # connections and topics whose records were seen before their acknowledgements


class AwaitedIds:
    """A run of messages that were acknowledged. left: not found yet; deadline: after which they are given up"""

    __slots__ = ("deadline", "found", "left")

    def __init__(self, found: Found, left: int, deadline: float) -> None:
        self.found, self.left, self.deadline = found, left, deadline


class PushIds:
    """waiting: messages whose records were not found yet"""

    def __init__(self) -> None:
        self.waiting = 0
        self._wanted: OrderedDict[Key, deque[AwaitedIds]] = OrderedDict()
        self._early: defaultdict[Key, deque[Run]] = defaultdict(deque)
        self._given_up: Counter[Key] = Counter()

    def expect(self, client_id: str, topic: str, count: int, found: Found | None, deadline: float) -> None:
        """Messages were acknowledged. found: None: nobody asks, but their records come all the same"""
        key = client_id, topic
        wanted = AwaitedIds(found or ignore, count, deadline)
        self.waiting += count
        early = self._early.get(key)
        while early and wanted.left:
            early[0] = rest = self._meet(wanted, early[0])
            if rest[0] == rest[1]:
                early.popleft()
        if early is not None and not early:
            del self._early[key]
        if wanted.left:
            self._wanted.setdefault(key, deque()).append(wanted)

    def _meet(self, wanted: AwaitedIds, run: Run) -> Run:
        """Those of both that belong together; returns the records that are left."""
        first, stop = run
        count = min(wanted.left, stop - first)
        wanted.left -= count
        self.waiting -= count
        wanted.found(count, first)
        return first + count, stop

    def see(self, numbers: Mapping[Key, Iterable[Run]]) -> None:
        """Records of our connections, in the log's order."""
        for key, runs in numbers.items():
            for run in runs:
                self._see(key, run)

    def _see(self, key: Key, run: Run) -> None:
        first, stop = run
        if given_up := min(self._given_up[key], stop - first):
            self._given_up[key] -= given_up
            first += given_up
        wanted = self._wanted.get(key)
        while wanted and first < stop:
            first, _ = self._meet(wanted[0], (first, stop))
            if not wanted[0].left:
                wanted.popleft()
        if wanted is not None and not wanted:
            del self._wanted[key]
        if first < stop:
            self._early[key].append((first, stop))
            if len(self._early) > EARLY_MAX:
                del self._early[next(iter(self._early))]

    def give_up(self, now: float) -> int:
        """Those whose time is over get none. returns: how many"""
        count = 0
        for key, wanted in list(self._wanted.items()):
            while wanted and wanted[0].deadline <= now:
                run = wanted.popleft()
                self._given_up[key] += run.left
                self.waiting -= run.left
                count += run.left
                run.found(run.left, None)
            if not wanted:
                del self._wanted[key]
        return count

    def forget(self, client_id: str) -> None:
        """The connection has ended: nothing more of it is acknowledged."""
        for key in [key for key in self._early if key[0] == client_id]:
            del self._early[key]
        for key in [key for key in self._given_up if key[0] == client_id and key not in self._wanted]:
            del self._given_up[key]


def ignore(count: int, number: int | None) -> None: ...
