"""Back-off after failed logins: the refusal to an address is delayed twice as long each time.

Only the refused connection waits; a correct password is never delayed. Bounded memory; time is an argument."""

from __future__ import annotations

from collections import OrderedDict

FIRST_SECONDS, SECONDS_MAX = 0.25, 8.0
FORGET_SECONDS = 60.0  # half-life of an address's count
ADDRESSES_MAX = 10_000


class LoginBackoff:
    """Address -> decaying count of failed logins."""

    def __init__(self, first_seconds: float = FIRST_SECONDS, seconds_max: float = SECONDS_MAX) -> None:
        """seconds_max: 0 for no delay"""
        self.first_seconds, self.seconds_max = first_seconds, seconds_max
        self._failures: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address -> (count, when)

    def failed(self, address: str, now: float) -> float:
        """Count a failed login; returns the seconds by which to delay its refusal."""
        count, when = self._failures.pop(address, (0.0, now))
        count *= 0.5 ** ((now - when) / FORGET_SECONDS)
        self._failures[address] = (min(count + 1.0, 64.0), now)
        if len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)
        return float(min(self.seconds_max, self.first_seconds * 2.0**count))

    def __len__(self) -> int:
        return len(self._failures)
