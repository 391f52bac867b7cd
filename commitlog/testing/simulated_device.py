"""The content of a file of the simulated file system: as read, as after a power loss, and the sectors between.

`simulated_files` has the fault model."""

from __future__ import annotations

from collections.abc import Callable

SECTOR = 512
BLOCK = 4096
Choose = Callable[[int], int]  # a number from 0 to below n


class SimulatedDisk:
    """One file's content: `cache` as read, `device` as after a power loss, `dirty` the sectors between.

    cut: the least size that the file was truncated to since the last sync, None if it was not"""

    __slots__ = ("cache", "cut", "device", "dirty")

    def __init__(self, content: bytes = b"") -> None:
        self.cache, self.device = bytearray(content), bytearray(content)
        self.dirty: set[int] = set()
        self.cut: int | None = None

    def write(self, position: int, data: bytes) -> None:
        if not data:
            return
        end = position + len(data)
        if len(self.cache) < end:
            self.cache.extend(bytes(end - len(self.cache)))
        self.cache[position:end] = data
        self.dirty.update(range(position // SECTOR, (end + SECTOR - 1) // SECTOR))

    def truncate(self, size: int) -> None:
        if size > len(self.cache):
            raise NotImplementedError("the log makes files longer by writing only")
        if size == len(self.cache):
            return
        del self.cache[size:]
        self.dirty = {sector for sector in self.dirty if sector * SECTOR < size}
        self.cut = size if self.cut is None else min(self.cut, size)

    def sync(self, sectors: set[int], *, cuts: bool = True) -> None:
        """Bring these sectors to the device; the others of the dirty ones stay away from it, and count as clean.

        cuts: so does a truncation"""
        if self.cut is not None and cuts:
            del self.device[self.cut :]
        self.cut = None
        if sectors == self.dirty:
            # A truncation that a failed sync lost leaves more on the device than the file has.
            self.device.extend(bytes(max(0, len(self.cache) - len(self.device))))
        for sector in sectors:
            at, end = sector * SECTOR, min((sector + 1) * SECTOR, len(self.cache))
            if len(self.device) < end:
                self.device.extend(bytes(end - len(self.device)))
            self.device[at:end] = self.cache[at:end]
        self.dirty.clear()


class Change:
    """A change of names that is not on the device: `after` holds the new ones, None where a name went."""

    __slots__ = ("after",)

    def __init__(self, after: dict[str, SimulatedDisk | Directory | None]) -> None:
        self.after = after


class Directory:
    """names: current; device: after a power loss that loses all of `changes`."""

    __slots__ = ("changes", "device", "names")

    def __init__(self) -> None:
        self.names: dict[str, SimulatedDisk | Directory] = {}
        self.device: dict[str, SimulatedDisk | Directory] = {}
        self.changes: list[Change] = []

    def change(self, after: dict[str, SimulatedDisk | Directory | None]) -> None:
        self.changes.append(Change(after))
        apply(self.names, after)

    def sync(self) -> None:
        self.device = dict(self.names)
        self.changes.clear()


def apply(names: dict[str, SimulatedDisk | Directory], after: dict[str, SimulatedDisk | Directory | None]) -> None:
    for name, node in after.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def torn_together(disk: SimulatedDisk, sector_bytes: int) -> list[list[int]]:
    """The dirty sectors, each of which a power loss may lose."""
    if sector_bytes == SECTOR:
        return [[sector] for sector in sorted(disk.dirty)]
    whole: dict[int, list[int]] = {}
    for sector in sorted(disk.dirty):
        whole.setdefault(sector * SECTOR // sector_bytes, []).append(sector)
    return list(whole.values())


def survived(disk: SimulatedDisk, choose: Choose, sector_bytes: int) -> SimulatedDisk:
    """The device's content after a power loss."""
    how = choose(4) if disk.dirty else 0  # none of the sectors, all, or each by a choice of its own
    content = bytearray(disk.device)
    if disk.cut is not None and choose(2):
        del content[disk.cut :]
    for sectors in torn_together(disk, sector_bytes) if how else []:
        if how > 1 and not choose(2):
            continue
        for sector in sectors:
            at, end = sector * SECTOR, min((sector + 1) * SECTOR, len(disk.cache))
            content.extend(bytes(max(0, end - len(content))))
            content[at:end] = disk.cache[at:end]
    return SimulatedDisk(bytes(content))


def one_loss(number: int) -> Choose:
    """Of the 2 ** at_stake() losses that are possible, this one: a bit for each thing at stake."""

    def choose(n: int) -> int:
        nonlocal number
        if n == 4:
            return 3
        number, bit = number >> 1, number & 1
        return bit

    return choose


def blocks(size: int) -> int:
    """Bytes of a file of this size on disk."""
    return (size + BLOCK - 1) // BLOCK * BLOCK


def taken(directory: Directory) -> int:
    """Bytes of all files on disk."""
    return sum(
        taken(node) if isinstance(node, Directory) else blocks(len(node.cache)) for node in directory.names.values()
    )
