"""Free space of the disk: measured on a thread once a second, and earlier when a quarter of the reserve may have been
written since."""
# compiled: warm

from __future__ import annotations

from math import inf

from commitlog.disk.space import VolumeSpace
from commitlog.log.store import Store
from rumq.loop.ports import ReadPool
from rumq.loop.stage import Stage
from rumq.session.ports.clock import TurnClock
from rumq.shards.write_path.write_admission import WriteAdmission
from rumq.shards.write_path.write_lane import Submitted

MEASURE_SECONDS = 1.0
UNLIMITED = (1 << 63) - 1


class FreeSpaceProbe(Stage):
    """latest: the last measurement; None until there is one, and again once its reader has reset it"""

    def __init__(
        self, store: Store, pool: ReadPool, admission: WriteAdmission, clock: TurnClock, written: Submitted
    ) -> None:
        self._store, self._pool, self._admission, self._clock = store, pool, admission, clock
        self._written = written
        self._due_at = 0.0  # monotonic seconds; inf while it is measured
        self._due_bytes = UNLIMITED  # once more than that has been written
        self._is_measuring = False
        self._began_at, self._began_bytes = 0.0, 0  # of the last measurement
        self.latest: VolumeSpace | None = None

    @property
    def free_bytes_min(self) -> int:
        return self._admission.free_bytes_min

    def end_turn(self) -> None:
        """Measure if it is time."""
        now: float = self._clock.monotonic
        written_bytes: int = self._written.bytes
        if now >= self._due_at or (written_bytes > self._due_bytes and not self._is_measuring):
            self._due_at, self._is_measuring = inf, True
            self._began_at, self._began_bytes = now, written_bytes
            self._pool.submit(self._measure, self._measured)

    def _measure(self) -> VolumeSpace:
        """On a thread. raises: OSError"""
        self.latest = self._store.space()
        return self.latest

    def _measured(self, space: VolumeSpace | None, fault: BaseException | None) -> None:
        self._is_measuring = False
        least = self._admission.free_bytes_min
        self._due_at = self._began_at + MEASURE_SECONDS
        self._due_bytes = self._began_bytes + least // 4 if least > 0 else UNLIMITED
        if isinstance(fault, OSError):
            self._admission.unreachable(fault)
        elif fault is not None:
            raise fault
        elif space is not None:
            self._admission.free(space.free_bytes)
