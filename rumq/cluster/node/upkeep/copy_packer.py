"""Packs the finished segments of a node's copies while another node leads: one at a time, in another thread.

The file is put in place by the process's own thread, between two turns. docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from typing import Protocol

from commitlog.errors import LogError
from commitlog.write.segment_packing import BLOCK_BYTES, SegmentPacking

STEPS = 8  # that one job makes: a turn of the process comes some ten times a second when nothing is written
LOOK_SECONDS = 5.0  # between looks for something to pack
REST_SECONDS = 60.0  # after a failure, and while the disk is full


class PackedCopies(Protocol):
    """`rumq.cluster.node.log_copies`"""

    @property
    def can_replace(self) -> bool: ...
    def take_packing(self, salt: int) -> tuple[str, SegmentPacking] | None: ...
    def retry_packing(self, key: str, packing: SegmentPacking) -> None: ...
    def replace_packed(self, key: str, packing: SegmentPacking) -> bool: ...


class CopyPacker:
    """may_pack: whether all nodes that have a copy can read packed ones, as far as is known now"""

    def __init__(
        self, copies: PackedCopies, bytes_per_second: int, has_room: Callable[[int], bool], tell: Callable[..., None],
        now: float,
    ) -> None:  # fmt: skip
        """bytes_per_second: 0 switches it off; has_room: for so many bytes; tell: takes events; now: monotonic"""
        self._copies, self._has_room, self._tell = copies, has_room, tell
        self._pause = STEPS * BLOCK_BYTES / max(1, bytes_per_second)
        self._next = now if bytes_per_second else inf
        self._worker: ThreadPoolExecutor | None = None
        self._job: Future[bool] | None = None
        self._packing: SegmentPacking | None = None
        self._key = ""
        self.may_pack = False
        self._is_closing = False  # read by the worker: who takes office waits for one step at most

    def step(self, now: float) -> None:
        """raises: OSError, LogError: the copy cannot go on"""
        job = self._job
        if job is not None:
            if not job.done():
                return
            self._job = None
            self._stepped(job, now)
        if now < self._next:
            return
        if self._packing is None:
            self._begin(now)
        elif self._packing.packed is not None:
            self._replace(self._packing, now)
        else:
            self._submit(self._packing)

    def _begin(self, now: float) -> None:
        found = self._copies.take_packing(int.from_bytes(os.urandom(8), "little") | 1) if self.may_pack else None
        if found is None:
            self._next = now + LOOK_SECONDS
            return
        key, packing = found
        if not self._has_room(packing.segment.disk_bytes):
            self._copies.retry_packing(key, packing)
            self._next = now + REST_SECONDS
            return
        self._key, self._packing = key, packing
        self._submit(packing)

    def _submit(self, packing: SegmentPacking) -> None:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "rumq-pack")
        self._job = self._worker.submit(self._some_steps, packing)

    def _stepped(self, job: Future[bool], now: float) -> None:
        packing = self._packing
        assert packing is not None
        self._next = now + self._pause
        fault = job.exception()
        if isinstance(fault, OSError | LogError):
            why = f"{packing.segment.path} could not be packed, and stays as it is: {fault}"
            self._tell("log.failed", **where(self._key), why=why)
            self._packing, self._next = None, now + REST_SECONDS
        elif fault is not None:
            raise fault
        elif job.result() and packing.packed is None:
            self._packing = None

    def _replace(self, packing: SegmentPacking, now: float) -> None:
        if not self.may_pack:
            packing.discard()
            self._copies.retry_packing(self._key, packing)
            self._packing, self._next = None, now + LOOK_SECONDS
        elif self._copies.can_replace:
            self._packing = None
            if self._copies.replace_packed(self._key, packing):
                segment, packed = packing.segment, packing.packed
                assert packed is not None
                self._tell(
                    "log.packed", **where(self._key), first_lsn=segment.base_lsn, next_lsn=packed.end_lsn,
                    bytes=packed.stop, bytes_before=segment.disk_bytes,
                )  # fmt: skip

    def _some_steps(self, packing: SegmentPacking) -> bool:
        """Whether that was all; on the worker. raises: OSError, LogError"""
        return any(packing.step() for _ in range(STEPS) if not self._is_closing)

    def close(self) -> None:
        """Leave nothing beside a segment."""
        self._is_closing = True
        if self._worker is not None:
            self._worker.shutdown()
            self._worker = None
        if self._packing is not None:
            self._packing.abandon()
            self._packing = None


def where(key: str) -> dict[str, object]:
    """For an event. key: as main/g1/p0"""
    stream, _, number = key.split("/")
    return {"stream": stream, "partition": int(number[1:])}
