"""The ids of the messages of one push: looked for in the log in runs of one topic, and put into its results."""

from __future__ import annotations

from functools import partial
from itertools import groupby

import trio

from rumq.queues.kernels.message_ids import put_ids
from rumq.queues.rules.messages import Pushed, PushResult
from rumq.queues.rules.names import message_topic
from rumq.queues.rules.push_ids import PushIds

UNPLACED = Pushed(None)


class PushPlaces:
    """done: every message that was taken has its id, or none is known

    topics: of a queue, of each message; numbers: where the result of each is in `results`"""

    def __init__(self, label: str, topics: list[str], numbers: list[int], results: list[PushResult]) -> None:
        self._label, self._topics, self._numbers, self._results = label, topics, numbers, results
        self._left = len(numbers)
        self._at = 0
        self.done = trio.Event()

    def expect(self, ids: PushIds, client_id: str, first: int, stop: int, deadline: float) -> None:
        """Messages first..stop were acknowledged: look for them. deadline: as of `PushIds`"""
        at = first
        for topic, same in groupby(self._topics[first:stop]):
            count = len(list(same))
            found = partial(self._found, topic, [at])
            ids.expect(client_id, message_topic(self._label, topic), count, found, deadline)
            at += count

    def _found(self, topic: str, reached: list[int], count: int, number: int | None) -> None:
        """reached: how far this run is known"""
        at = reached[0]
        if number is not None:
            put_ids(self._results, self._numbers, at, count, topic, number)
        reached[0] = at + count
        self._leave(count)

    def are_known(self, refused: int) -> bool:
        """refused: messages that have no place"""
        self._leave(refused)
        return self.done.is_set()

    def _leave(self, count: int) -> None:
        self._left -= count
        if self._left <= 0:
            self.done.set()
