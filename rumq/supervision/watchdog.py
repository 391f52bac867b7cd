"""The watchdog of a service manager: a loop that no longer turns is noticed, and the service restarted.

systemd ends and restarts a service that has not sent WATCHDOG=1 for WATCHDOG_USEC, sd_watchdog_enabled(3). A shard
proves with a timer of its own that its loop turns (`Heartbeat`). Alone, it notifies the manager itself; under a
supervisor it writes a byte to it, and the supervisor notifies as long as no shard is silent (`ShardWatch`).
Time is an argument."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

ALIVE = "WATCHDOG=1"
BEATS = 4  # heartbeats in the time after which the manager acts: one that is late ends nothing


def watchdog_seconds(main_pid: int) -> float:
    """The time after which the service manager restarts a silent `main_pid`; 0: it watches nobody, or another."""
    try:
        seconds = int(os.environ.get("WATCHDOG_USEC", "0")) / 1_000_000
        watched = int(os.environ.get("WATCHDOG_PID", main_pid))
    except ValueError:
        return 0.0
    return max(0.0, seconds) if watched == main_pid else 0.0


class Heartbeat:
    """Beats at once and `BEATS` times in `seconds`, as long as somebody makes the calls of `later`."""

    def __init__(
        self, later: Callable[[float, Callable[[], None]], None], seconds: float, beat: Callable[[], object]
    ) -> None:
        self._later, self._interval, self._beat = later, seconds / BEATS, beat

    def begin(self) -> None:
        self._later(self._interval, self.begin)  # first: a beat that fails is not the last one
        self._beat()


class ShardWatch:
    """When the supervisor notifies the manager. A shard is watched from its first heartbeat until its process ends: one
    that recovers its log, or waits for its restart, is silent for good reason.

    seconds: of the manager, 0 for none; late: reports a shard that has been silent for half of them, once"""

    def __init__(self, seconds: float, notify: Callable[[], None], late: Callable[[int, float], None]) -> None:
        self._interval, self._silence_max = seconds / BEATS, seconds / 2
        self._notify, self._late = notify, late
        self._heard: dict[int, float] = {}
        self._told: set[int] = set()
        self.next_check = 0.0 if seconds else math.inf

    def heard(self, shard: int, now: float) -> None:
        self._heard[shard] = now
        self._told.discard(shard)

    def ended(self, shard: int) -> None:
        self._heard.pop(shard, None)
        self._told.discard(shard)

    def check(self, now: float) -> None:
        """Notify the manager, if it is time to and no shard is silent."""
        if now < self.next_check:
            return
        self.next_check = now + self._interval
        silent = {shard: now - at for shard, at in self._heard.items() if now - at > self._silence_max}
        for shard in sorted(silent.keys() - self._told):
            self._told.add(shard)
            self._late(shard, silent[shard])
        if not silent:
            self._notify()
