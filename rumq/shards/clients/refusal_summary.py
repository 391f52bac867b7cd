"""Refusal events of one address: reported one by one at first, then summarized, so that a client that is refused a
thousand times a second does not fill the operator's disk. The time is an argument."""
# compiled: warm

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from rumq.mqtt.reasons import Reason
from rumq.session.state.persistent_sessions import holder_of

SUMMED = frozenset(
    {
        "auth.failed",
        "client.refused",
        "connection.refused",
        "permission.refused",
        "publish.refused",
        "subscribe.refused",
    }
)
COUNTED = ("client.refused", "connection.refused")
TOLD_MAX = 100  # of one kind and one address in a window
WINDOW_SECONDS = 10.0
ADDRESSES_MAX = 10_000  # further ones are counted as one, ""


class RefusalSummary:
    """`tell` in the place of the one given: the same, but for what there is too much of.

    refused: clients that were not admitted, or closed for a fault of theirs, by reason: the name of the MQTT 5 reason
    code, or the transport that failed before"""

    def __init__(self, event: Callable[..., None], later: Callable[[float, Callable[[], None]], None]) -> None:
        """later: calls back after so many seconds"""
        self.refused: Counter[str] = Counter()
        self._event, self._later = event, later
        self._told: Counter[tuple[str, str]] = Counter()  # (address, event)
        self._left_out: Counter[tuple[str, str]] = Counter()

    def tell(self, name: str, /, **fields: object) -> None:
        """Tell an event, or count it."""
        if name not in SUMMED:
            self._event(name, **fields)
            return
        if name in COUNTED:
            self.refused[reason_of(fields)] += 1
        if not self._told:
            self._later(WINDOW_SECONDS, self._sum)
        peer = str(fields.get("peer") or "")
        place = holder_of(None, peer.rpartition(":")[0] or peer).removeprefix("address ")
        key = place, name
        if key not in self._told and len(self._told) >= ADDRESSES_MAX:
            key = "", name
        self._told[key] += 1
        if self._told[key] <= TOLD_MAX:
            self._event(name, **fields)
        else:
            self._left_out[key] += 1

    def _sum(self) -> None:
        """The window is over."""
        for (address, of), count in self._left_out.items():
            self._event("refusals.summed", address=address, of=of, count=count, seconds=WINDOW_SECONDS)
        self._left_out.clear()
        self._told.clear()


def reason_of(fields: Mapping[str, object]) -> str:
    """A label of few values."""
    reason = fields.get("reason")
    if isinstance(reason, int):
        try:
            return Reason(reason).name.lower()
        except ValueError:
            return "unspecified_error"
    return str(fields.get("transport", "unknown"))
