"""What became of the messages of a channel, as one engine has counted it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ChannelCounts:
    """Messages since the state was made."""

    delivered: int = 0
    acknowledged: int = 0
    rejected: int = 0
    overdue: int = 0
    expired: int = 0
    dead: int = 0
