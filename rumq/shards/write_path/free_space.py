"""Free space of the disk: measured on a thread once a second, and earlier when a quarter of the reserve may have been
written since."""
# compiled: warm

from __future__ import annotations

from typing import Protocol

from commitlog.disk.space import VolumeSpace
from commitlog.log.store import Store
from rumq.loop.ports import Clock, ReadPool
from rumq.shards.write_path.write_admission import WriteAdmission

MEASURE_SECONDS = 1.0


class Written(Protocol):
    """submitted_bytes: handed to the writers, so far"""

    submitted_bytes: int


class FreeSpaceProbe:
    """latest: the last measurement; None until there is one, and again once its reader has reset it"""

    def __init__(self, store: Store, pool: ReadPool, admission: WriteAdmission, clock: Clock, written: Written) -> None:
        self._store, self._pool, self._admission, self._clock = store, pool, admission, clock
        self._written = written
        self._next = 0.0
        self._written_before = 0
        self._is_measuring = False
        self.latest: VolumeSpace | None = None

    @property
    def free_bytes_min(self) -> int:
        return self._admission.free_bytes_min

    def end_turn(self) -> None:
        """Measure if it is time."""
        if self._is_measuring:
            return
        written_bytes = self._written.submitted_bytes
        monotonic, since = self._clock.monotonic, written_bytes - self._written_before
        if monotonic >= self._next or 0 < self._admission.free_bytes_min < 4 * since:
            self._next, self._written_before = monotonic + MEASURE_SECONDS, written_bytes
            self._is_measuring = True
            self._pool.submit(self._measure, self._measured)

    def _measure(self) -> VolumeSpace:
        """On a thread. raises: OSError"""
        self.latest = self._store.space()
        return self.latest

    def _measured(self, space: VolumeSpace | None, fault: BaseException | None) -> None:
        self._is_measuring = False
        if isinstance(fault, OSError):
            self._admission.unreachable(fault)
        elif fault is not None:
            raise fault
        elif space is not None:
            self._admission.free(space.free_bytes)
