"""rumqd that kills itself (kill -9) at a named point: `python -m tests.faults.kill.doomed POINT NUMBER run ...`.

A point is a call to the file system and a side of it: "before write", "after sync", "half write", ... The process dies
at the NUMBER-th time it gets there. "never 0" runs an ordinary broker. Only the broker's files are wrapped."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import rumq.process.broker.broker_process as holding
import rumq.process.shard.shard as serving
import rumq.process.shard.shard_store as opening
from commitlog.disk.files import RealFiles
from rumq.cli.main import main

CALLS = ("create", "write", "sync", "sync_directory", "rename", "remove", "close")
POINTS = [f"{side} {call}" for call in CALLS for side in ("before", "after")] + ["half write"]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DoomedFiles(RealFiles):
    """The machine's file system, until its time has come."""

    point, left = "never", 0

    @classmethod
    def reached(cls, point: str) -> bool:
        if point == cls.point:
            cls.left -= 1
            return cls.left == 0
        return False

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        if self.reached("half write"):
            whole = b"".join(bytes(b) for b in buffers)
            super().write(handle, position, [whole[: len(whole) // 2]])
            die()
        super().write(handle, position, buffers)


def wrapped(call: str) -> Callable[..., Any]:
    plain = getattr(DoomedFiles, call)

    def doomed(self: DoomedFiles, *args: Any, **more: Any) -> Any:
        if self.reached(f"before {call}"):
            die()
        result = plain(self, *args, **more)
        if self.reached(f"after {call}"):
            die()
        return result

    return doomed


if __name__ == "__main__":
    DoomedFiles.point, DoomedFiles.left = sys.argv[1], int(sys.argv[2])
    for name in CALLS:
        setattr(DoomedFiles, name, wrapped(name))
    serving.RealFiles = opening.RealFiles = holding.RealFiles = DoomedFiles  # type: ignore[misc]
    sys.exit(main(sys.argv[3:]))
