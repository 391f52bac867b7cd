"""Where the other broker is reached: one address, or several, of which one is tried next. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rumq.bridge.side import Side

PREFERRED_SECONDS = 60.0  # between looks for the first of several addresses
PREFERRED_SECONDS_MAX = 3600.0  # likewise, once it was gone back to in vain


class RemoteAddresses:
    """sides: the other broker by each address; is_round_robin: all are equal, otherwise the first one is preferred"""

    def __init__(self, sides: Sequence[Side], *, is_round_robin: bool = False) -> None:
        self._sides, self._is_round_robin = tuple(sides), is_round_robin
        self._at = 0
        self._failed = 0  # addresses in a row
        self._has_just_failed = False
        self._is_return = False  # the first one was gone back to, and has not been used since
        self.look_seconds = PREFERRED_SECONDS  # before the first one is looked for, while another one is in use
        self._take_5: set[int] = set()  # positions of addresses that have taken MQTT 5

    @property
    def side(self) -> Side:
        """The one to connect to."""
        return replace(self._sides[self._at], takes_5=self._at in self._take_5)

    @property
    def maybe_preferred(self) -> Side | None:
        """The first address, while another one is in use; None: nothing is better."""
        return self._sides[0] if self._at and not self._is_round_robin else None

    def take_untried(self) -> bool:
        """Whether one has just failed, and the next one can be tried without a pause."""
        just, self._has_just_failed = self._has_just_failed, False
        return just and self._failed % len(self._sides) != 0

    def note_failed(self) -> None:
        """This one cannot be reached, or refuses, be it the subscriptions."""
        if self._is_return and self._at == 0:
            self._is_return = False
            self.look_seconds = min(2 * self.look_seconds, PREFERRED_SECONDS_MAX)
        self._failed += 1
        self._has_just_failed = True
        self._at = (self._at + 1) % len(self._sides)

    def note_opened(self, version: int) -> None:
        """version: of MQTT"""
        if version == 5:
            self._take_5.add(self._at)

    def note_used(self) -> None:
        """The bridge relays by it."""
        self._failed, self._is_return = 0, False
        if self._at == 0:
            self.look_seconds = PREFERRED_SECONDS

    def note_returned(self) -> None:
        """A link that works ends for the first one, of which only TCP is known to be there."""
        self._is_return = True

    def note_paired_before(self, remote: str) -> None:
        """remote: `Pairing.remote` as it was found: an id is that of a rumq broker, of which addresses have none."""
        if remote and all(each.address != remote for each in self._sides):
            self._take_5 = set(range(len(self._sides)))

    def note_lost(self) -> None:
        """A connection that was used has ended: where all are equal, the next one has its turn."""
        self._at = (self._at + 1) % len(self._sides) if self._is_round_robin else 0
