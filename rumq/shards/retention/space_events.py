"""What the operator is told of the disk: that segments go for room, that this is over, when the disk will be full."""

from __future__ import annotations

from rumq.loop.ports import Clock, EventSink

EPISODE_SECONDS = 86_400.0  # an episode is over when no segment was removed for so long
TELL_AHEAD_SECONDS = (86_400.0, 3600.0)


class SpaceEvents:
    """segments, records, bytes: that went for room, here, since the start"""

    def __init__(self, clock: Clock, events: EventSink) -> None:
        self._clock, self._events = clock, events
        self.segments = self.records = self.bytes = 0
        # when its last segment was removed, and the totals when it began
        self._episode: tuple[float, int, int, int] | None = None
        self._told_wanted = False
        self._told_ahead = len(TELL_AHEAD_SECONDS) * [False]

    def count(self, segments: int, records: int, size: int) -> None:
        self.segments += segments
        self.records += records
        self.bytes += size

    def low(self, takes_wanted: bool, *, free_bytes: int, free_wanted: int, log_bytes: int) -> None:
        """Segments go. takes_wanted: also what lasting sessions or the export have not had"""
        is_new = self._episode is None
        begun = self._episode[1:] if self._episode is not None else (self.segments, self.records, self.bytes)
        self._episode = (self._clock.monotonic, *begun)
        if is_new or (takes_wanted and not self._told_wanted):
            self._told_wanted = takes_wanted
            why = "the oldest segments of all streams go"
            if takes_wanted:
                why += ", also what lasting sessions or the export have not had"
            self._events.tell("disk.low", free_bytes=free_bytes, free_wanted=free_wanted, log_bytes=log_bytes, why=why)

    def maybe_eased(self, free_bytes: int) -> None:
        """Tell that no segment has gone for long, if that is so."""
        episode = self._episode
        if episode is not None and self._clock.monotonic - episode[0] > EPISODE_SECONDS:
            self._episode, self._told_wanted = None, False
            self._events.tell(
                "disk.eased", free_bytes=free_bytes, segments=self.segments - episode[1],
                records=self.records - episode[2], bytes=self.bytes - episode[3],
            )  # fmt: skip

    def look_ahead(self, seconds: float | None, *, free_bytes: int, bytes_per_second: float, yields: bool) -> None:
        """Tell a day and an hour before the disk is full, once each until it looks better. seconds: until then"""
        if self._episode is not None:
            return
        for number, ahead in enumerate(TELL_AHEAD_SECONDS):
            if seconds is None or seconds > 2 * ahead:
                self._told_ahead[number] = False
        due = [number for number, ahead in enumerate(TELL_AHEAD_SECONDS) if (seconds or 0.0) <= ahead]
        if seconds is None or seconds <= 0 or not due or self._told_ahead[due[-1]]:
            return
        for number in due:
            self._told_ahead[number] = True
        self._events.tell(
            "disk.filling", free_bytes=free_bytes, bytes_per_second=round(bytes_per_second),
            seconds=round(seconds), then="the oldest segments go" if yields else "publishers are refused",
        )  # fmt: skip
