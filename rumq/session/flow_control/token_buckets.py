"""Token buckets by name, for amounts that are known only when they are spent. Time is an argument, monotonic seconds.

A bucket holds `BURST_SECONDS` of its rate. Each is one number, when it will be full again (as in the generic cell rate
algorithm, ITU-T I.371), and full ones are forgotten."""

from __future__ import annotations

from rumq.session.flow_control.rate_limits import BURST_SECONDS

PRUNED_AT = 4096  # buckets; full ones are looked for when there are as many, and then at twice what is left


class TokenBuckets:
    def __init__(self) -> None:
        self._full_at: dict[str, float] = {}
        self._pruned_at = PRUNED_AT

    def __len__(self) -> int:
        return len(self._full_at)

    def spend(self, name: str, amount: float, rate: float, now: float) -> None:
        """Take tokens, which may leave fewer than none. rate: tokens a second; 0: no limit"""
        if not rate or not amount:
            return
        self._full_at[name] = max(now, self._full_at.get(name, now)) + amount / rate
        if len(self._full_at) >= self._pruned_at:
            self._full_at = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
            self._pruned_at = max(PRUNED_AT, 2 * len(self._full_at))

    def wait(self, name: str, now: float) -> float:
        """Seconds until there are no fewer tokens than none."""
        return max(0.0, self._full_at.get(name, now) - now - BURST_SECONDS)
