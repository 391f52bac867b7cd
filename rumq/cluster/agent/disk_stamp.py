"""The stamp of a disk: a number that rises while its node lives, on the disk first and then in the control plane.

A disk whose stamp is lower than the one that the control plane has was restored from an old copy: what its copies of
shards acknowledged and promised since is missing. They are doubted then, and leaders repair them. It rises every 10 s,
at a stop, and also while the control plane is away; what is younger than one rise is found by the leader that the copy
had acknowledged more to, or by the marks of other replicas. docs/explanation/replication.md, R11"""

from __future__ import annotations

from pathlib import Path

import msgspec

from rumq.cluster.control.durable_file import replace_durably


class _StampFile(msgspec.Struct):
    stamp: int = 0
    restored: int = 0


class DiskStamp:
    """stamp: of this disk; restored: the stamp that was missing when it was last found to be an old copy, 0: never"""

    def __init__(self, data: Path) -> None:
        self._path = data / "_cluster" / "stamp.json"
        try:
            self._kept = msgspec.json.decode(self._path.read_bytes(), type=_StampFile)
        except (OSError, msgspec.MsgspecError):
            self._kept = _StampFile()  # a stamp that is lost is a low one

    @property
    def stamp(self) -> int:
        return self._kept.stamp

    @property
    def restored(self) -> int:
        return self._kept.restored

    def met(self, noted: int) -> bool:
        """noted: in the control plane. returns: whether this disk is an old copy. raises: OSError"""
        if noted <= self._kept.stamp:
            return False
        self._keep(_StampFile(noted, noted))
        return True

    def rise(self) -> int:
        """The next stamp, which is on disk when it returns. raises: OSError"""
        self._keep(_StampFile(self._kept.stamp + 1, self._kept.restored))
        return self._kept.stamp

    def _keep(self, kept: _StampFile) -> None:
        replace_durably(self._path, msgspec.json.encode(kept) + b"\n")
        self._kept = kept
