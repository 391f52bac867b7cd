"""What a replica of a shard has promised, and whose log it has: <data>/_cluster/shard-<n>.json. docs/log-format.md.

On disk before anybody is told of it: a replica that forgot a promise, or claims a log that it does not have, breaks the
majority that acknowledged a record. So a file that is lost is not made anew beside a log."""

from __future__ import annotations

import json

from commitlog.chunk import NUMBER_MAX
from commitlog.errors import LogError, StoreError
from commitlog.files import Files, make_durable_directory, replace_file, whole_file

DIRECTORY = "_cluster"
DOUBTED = -1  # instead of an opened epoch


class ReplicaState:
    """promised: the highest epoch that was promised; opened: the epoch of the last leader whose log is completely here

    disk: the id of the disk that these are true of; restored: the last time that the disk was an old copy"""

    def __init__(
        self, files: Files, path: str, promised: int, opened: int, disk: str, restored: int = 0
    ) -> None:
        self._files, self._path, self.restored = files, path, restored
        self.promised, self.opened, self.disk = promised, opened, disk

    def promise(self, epoch: int) -> None:
        """Listen to no older leader; durable when it returns. raises: OSError; LogError if a higher one is promised"""
        if epoch < self.promised:
            raise LogError(f"{self._path}: epoch {epoch} is asked for, and {self.promised} was promised")
        if epoch > self.promised:
            self._save(epoch, self.opened)

    def open(self, epoch: int) -> None:
        """The log of this epoch's leader is completely here, and synced; durable when it returns.

        raises: OSError; LogError if a higher one is promised or was opened"""
        if epoch < self.promised or epoch < self.opened:
            raise LogError(
                f"{self._path}: epoch {epoch} cannot be opened, {max(self.promised, self.opened)} is known"
            )
        if epoch > self.opened:
            self._save(max(epoch, self.promised), epoch)

    def distrust(self) -> None:
        """The log here may lack records that this replica acknowledged: it is nobody's. raises: OSError"""
        if self.opened != DOUBTED:
            self._save(self.promised, DOUBTED)

    def note_restored(self, restored: int) -> bool:
        """The disk is an old copy; restored: which time, ever higher. returns: whether that is news. raises: OSError"""
        if restored <= self.restored:
            return False
        self.restored = restored
        self._save(self.promised, DOUBTED)
        return True

    def _save(self, promised: int, opened: int) -> None:
        content: dict[str, int | str] = {"promised": promised, "opened": opened, "disk": self.disk}
        if self.restored:
            content["restored"] = self.restored
        replace_file(self._files, self._path, (json.dumps(content) + "\n").encode())
        self.promised, self.opened = promised, opened


def load_state(files: Files, root: str, shard: int, disk: str, *, has_log: bool) -> ReplicaState:
    """The state of a shard's replica; made when it is missing and there is no log yet.

    root: the data directory; disk: its id; has_log: a partition of the shard has a segment
    raises: OSError; StoreError when the file is missing or damaged beside a log, or of another disk"""
    path = f"{root}/{DIRECTORY}/shard-{shard}.json"
    if not files.exists(path):
        if has_log:
            raise refusal(root, path, "is missing, and there is a log")
        make_durable_directory(files, f"{root}/{DIRECTORY}", known=root)
        state = ReplicaState(files, path, 0, 0, disk)
        state._save(0, 0)
        return state
    found = decoded(whole_file(files, path))
    if found is None:
        raise refusal(root, path, "is damaged")
    promised, opened, of_disk, restored = found
    if of_disk != disk:
        raise refusal(root, path, f"is of disk {of_disk}, and this is {disk}")
    return ReplicaState(files, path, promised, opened, disk, restored)


def decoded(raw: bytes) -> tuple[int, int, str, int] | None:
    """(promised, opened, disk, restored); None if it is no state."""
    try:
        content = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    promised, opened, disk = (content.get(key) for key in ("promised", "opened", "disk"))
    restored = content.get("restored", 0)
    if type(promised) is not int or type(opened) is not int or not isinstance(disk, str):
        return None
    if type(restored) is not int:
        return None
    return (promised, opened, disk, restored) if DOUBTED <= opened <= promised < NUMBER_MAX else None


def refusal(root: str, path: str, what: str) -> StoreError:
    return StoreError(
        root,
        f"{path} {what}: what this replica has promised is unknown, so it must not vote. Move the data directory "
        f"away and start with an empty one: the other nodes fill it",
    )
