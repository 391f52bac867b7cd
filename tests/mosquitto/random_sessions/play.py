"""Play a script at two brokers, and say where they differ. Every wait is for something that has to come.

A fourth client gets everything: the next action comes once what was published so far, wills too, is out at both."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.conformance.peer import Address, Ended
from tests.mosquitto.random_sessions.actions import (
    CLIENTS,
    Action,
    Come,
    Leave,
    Publish,
    Script,
    Subscribe,
    Unsubscribe,
    Withhold,
)
from tests.mosquitto.random_sessions.twin_client import End, Got

STEPS = 35
ALL_QOS_0 = Come(CLIENTS, 5, True, (), None)
ROUNDS_MIN = 2  # of looks: what one client's acknowledgement brings to another is seen in the second
SECONDS = 15.0  # until both have delivered; both do at once, or never


@dataclass
class Difference:
    """client: whose; got: of each broker, in what this action brought"""

    script: list[Action]
    client: int
    got: tuple[Got, Got]

    def __str__(self) -> str:
        lines = [f"  {each}" for each in self.script]
        for name, got in zip(("first", "second"), self.got, strict=True):
            lines.append(f"client {self.client}, {name} broker: {got.answers} {sorted(got.messages, key=repr)}")
        return "\n".join(lines)


class Session:
    """The three clients."""

    def __init__(self, seed: int, brokers: tuple[Address, Address]) -> None:
        self._script, self._brokers, self._name = Script(seed), brokers, f"s{seed}"
        self._ends: list[Sequence[End]] = [()] * CLIENTS
        self._got = [(Got(), Got()) for _ in range(CLIENTS)]
        self._played: list[Action] = []
        self._seen = (Got(), Got())
        self._watchers = [
            End(address, ALL_QOS_0, f"{self._name}-all", got) for address, got in zip(brokers, self._seen, strict=True)
        ]

    def play(self, steps: int = STEPS) -> Difference | None:
        """The first difference, if there is one."""
        try:
            for watcher in self._watchers:
                watcher.subscribe(Subscribe(CLIENTS, ((f"{self._script.prefix}/#", 0),), ()))
            for _ in range(steps):
                action = self._script.next()
                self._played.append(action)
                self._act(action)
                if (found := self._settle()) is not None:
                    return found
        except (Ended, TimeoutError) as fault:
            raise AssertionError(f"{self._name}: {fault!r} after\n" + "\n".join(map(str, self._played))) from fault
        finally:
            for end in (*self._all(), *self._watchers):
                end.close()
        return None

    def _act(self, action: Action) -> None:
        client = action.client
        if isinstance(action, Come):
            before = self._ends[client]
            name = f"{self._name}-{client}"
            pairs = zip(self._brokers, self._got[client], strict=True)
            self._ends[client] = [End(address, action, name, got) for address, got in pairs]
            for end in before:
                end.taken_over()
            return
        for end in self._ends[client]:
            match action:
                case Subscribe():
                    end.subscribe(action)
                case Unsubscribe():
                    end.unsubscribe(action)
                case Publish():
                    end.publish(action)
                case Withhold():
                    end.withhold()
                case Leave():
                    end.leave(action)
        if isinstance(action, Leave):
            self._ends[client] = ()

    def _settle(self) -> Difference | None:
        """Look until both have brought the same, and forget it."""
        until, rounds = time.monotonic() + SECONDS, 0
        while True:
            for end in (*self._watchers, *self._all()):
                end.look()
            rounds += 1
            is_out = all(len(got.messages) == self._script.published for got in self._seen)
            differs = next((at for at, (one, other) in enumerate(self._got) if not alike(one, other)), None)
            if rounds >= ROUNDS_MIN and is_out and differs is None:
                break
            if time.monotonic() > until:
                if differs is None:
                    return Difference(self._played, CLIENTS, self._seen)
                return Difference(self._played, differs, self._got[differs])
        for got in (each for pair in self._got for each in pair):
            got.answers.clear()
            got.messages.clear()
        return None

    def _all(self) -> list[End]:
        return [end for ends in self._ends for end in ends]


def alike(one: Got, other: Got) -> bool:
    """Messages of different topics may come in any order."""
    return one.answers == other.answers and sorted(one.messages, key=repr) == sorted(other.messages, key=repr)
