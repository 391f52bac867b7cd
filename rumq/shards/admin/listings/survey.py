"""Connected clients by listener, counted some sessions a turn: a million of them delay nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rumq.loop.ports import Timers
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.shards.admin.listings.listings import Answer, Done

SESSIONS_A_TURN = 1024
Counted = Callable[[Counter[int]], Answer]


class Survey:
    def __init__(self, registry: Registry, timers: Timers) -> None:
        self._registry, self._timers = registry, timers

    def ask(self, answer: Counted) -> Callable[[Done], None]:
        """What counts and then calls back with `answer(connected clients by listener)`."""

        def begin(done: Done) -> None:
            left = list(self._registry.sessions.values())
            connected: Counter[int] = Counter()

            def go_on() -> None:
                some = left[-SESSIONS_A_TURN:]
                del left[-SESSIONS_A_TURN:]
                count(some, connected)
                if left:
                    self._timers.next_turn(go_on)
                else:
                    done(answer(connected))

            go_on()

        return begin


def count(sessions: list[Session], connected: Counter[int]) -> None:
    for session in sessions:
        if session.link is not None:
            connected[session.link.client.policy.index] += 1
