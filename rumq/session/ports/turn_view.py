"""What each connection of a shard reads and fills in a turn: one for all of them, which saves each two references."""
# compiled: warm

from __future__ import annotations

from rumq.mqtt.kernels.batch import Batch
from rumq.session.ports.backpressure import BackpressureBits
from rumq.session.ports.clock import TurnClock


class TurnView:
    """clock: the time of the turn; batches: what it published, one a partition; backpressure: of the partitions"""

    __slots__ = ("backpressure", "batches", "clock")

    def __init__(self, clock: TurnClock, batches: list[Batch], backpressure: BackpressureBits) -> None:
        self.clock, self.batches, self.backpressure = clock, batches, backpressure
