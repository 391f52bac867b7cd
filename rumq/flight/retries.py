"""When a client of Flight asks again, and when it gives up."""

from __future__ import annotations

from collections.abc import Callable

from rumq.flight.connection_faults import LASTING
from rumq.flight.errors import Away, TooManyReads
from rumq.table.flight_location import FlightLocation

AWAY_RETRY_SECONDS = 5.0  # longest pause between retries while a server is away


class Retries:
    """Of one client. wait: sleeps; now: monotonic seconds; known: another process had an answer from this server"""

    def __init__(
        self, location: FlightLocation, wait: Callable[[float], None], now: Callable[[], float], *, known: bool
    ) -> None:
        self._location, self._wait, self._now, self._known = location, wait, now, known
        self._away_since: float | None = None

    @property
    def first(self) -> int:
        """How many are left after an answer."""
        return self._location.retries

    def note_answer(self) -> None:
        self._known, self._away_since = True, None

    def before_retry(self, left: int, fault: Away | TooManyReads) -> None:
        """Wait before one of the retries that are `left`. raises: `fault`, when there is none"""
        seconds = self._location.retry_seconds * 2.0 ** min(self._location.retries - left, 20)
        if left <= 0:
            if not self._known or (isinstance(fault, Away) and fault.why in LASTING):
                raise fault
            seconds = min(seconds, AWAY_RETRY_SECONDS)
            if self._away_since is None:
                self._away_since = self._now()
            if self._now() - self._away_since + seconds > self._location.away_seconds_max:
                raise fault
        self._wait(seconds)
