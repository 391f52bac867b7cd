"""Who may not log in for now: bans of client ids, users and addresses, a broker that drains, and everybody while a
leader hears no majority. Time is a port.

A ban ends with its time. The caller disconnects clients that it names, and has the journal keep it for the next run
or leader: `rumq.shards.admin.standing_orders`."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rumq.loop.ports import Clock
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason

BANS_MAX = 10_000
NAME_BYTES_MAX = 1 << 20  # of all bans: each snapshot of the journal has them


@dataclass(slots=True)
class ActiveBan:
    """until: monotonic seconds; refused: logins so far"""

    until: float
    refused: int = 0


class AccessGate:
    """is_draining: no client is accepted; isolated: this leader hears no majority: makes what clients are told"""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bans: dict[tuple[str, str], ActiveBan] = {}
        self._name_bytes = 0
        self.is_draining = False
        self.isolated: Callable[[], MqttFault] | None = None

    @property
    def lets_everybody_in(self) -> bool:
        """Whether `refusal` has nothing to say about anybody."""
        return not (self._bans or self.is_draining or self.isolated is not None)

    def refusal(self, client_id: str, user: str | None, address: str) -> MqttFault | None:
        """Why this client may not log in. Cost: three look-ups, of one that logs in"""
        if self.is_draining:
            return MqttFault("the broker is being drained", Reason.SERVER_UNAVAILABLE)
        if self.isolated is not None:
            return self.isolated()
        if not self._bans:
            return None
        for key in (("client", client_id), ("user", user or ""), ("address", address)):
            ban = self._bans.get(key)
            if ban is None:
                continue
            if ban.until > self._clock.monotonic:
                ban.refused += 1
                return MqttFault(f"the operator has banned {key[0]} {key[1]!r}", Reason.BANNED)
            self._remove(key)
        return None

    def ban(self, kind: str, name: str, seconds: float) -> bool:
        """Ban for so long from now on; False: there are too many bans, or their names are too long."""
        key = kind, name
        self._remove(key)
        size = name_bytes(key)
        if not self._has_room(size):
            self._forget_old()
            if not self._has_room(size):
                return False
        self._bans[key] = ActiveBan(self._clock.monotonic + seconds)
        self._name_bytes += size
        return True

    def _has_room(self, size: int) -> bool:
        return len(self._bans) < BANS_MAX and self._name_bytes + size <= NAME_BYTES_MAX

    def unban(self, kind: str, name: str) -> bool:
        """Whether there was such a ban."""
        self._forget_old()
        return self._remove((kind, name))

    def bans(self) -> list[tuple[str, str, float, int]]:
        """(kind, name, seconds left, logins refused) of each."""
        self._forget_old()
        now = self._clock.monotonic
        return [(kind, name, ban.until - now, ban.refused) for (kind, name), ban in self._bans.items()]

    def names(self) -> list[tuple[str, str]]:
        """(kind, name) of each ban, also of some that are over."""
        return list(self._bans)

    def seconds_left(self, kind: str, name: str) -> float:
        """Of a ban; 0 or less: there is none."""
        ban = self._bans.get((kind, name))
        return 0.0 if ban is None else ban.until - self._clock.monotonic

    def _forget_old(self) -> None:
        now = self._clock.monotonic
        for key in [key for key, ban in self._bans.items() if ban.until <= now]:
            self._remove(key)

    def _remove(self, key: tuple[str, str]) -> bool:
        if self._bans.pop(key, None) is None:
            return False
        self._name_bytes -= name_bytes(key)
        return True


def name_bytes(key: tuple[str, str]) -> int:
    return len(key[1].encode())
