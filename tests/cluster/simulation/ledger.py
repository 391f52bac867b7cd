"""What must hold of a replicated log, whatever its code says: judged on what processes did and what disks have.

1. A value that is committed stays at its lsn: no two values of one lsn are ever committed or acknowledged.
2. A leader whose term opens has everything that was committed in earlier epochs, at the same lsn.
3. An epoch has at most one leader; what an older leader commits once a newer term is open, the newer one has too.
4. What is acknowledged is synced on a majority of the members of the time, and stays on one of those of later.
5. No replica cuts what it was told is committed, and every frame fits."""

from __future__ import annotations

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.quorum import HasVoters
from tests.cluster.simulation.disk import PARTITIONS, Disk


class Wrong(AssertionError):
    """A rule was broken. seed, at: of the run, and the seconds since its beginning"""


class Ledger:
    def __init__(self, disks: dict[str, Disk]) -> None:
        self._disks = disks
        self.values: dict[str, dict[int, int]] = {key: {} for key in PARTITIONS}  # committed: by lsn
        self.acknowledged = 0
        self.first: dict[str, int] = dict.fromkeys(PARTITIONS, 0)  # retention has removed what is below
        self.marks: dict[str, int] = dict.fromkeys(PARTITIONS, 0)  # committed up to here
        self._ends: dict[str, dict[int, int]] = {key: {} for key in PARTITIONS}  # committed, by epoch
        self._leaders: dict[int, str] = {}
        self._opened: dict[int, dict[str, tuple[int, list[int]]]] = {}  # by epoch: (first lsn, values) of each log
        self.last_opened = 0

    def took_office(self, node: str, epoch: int) -> None:
        other = self._leaders.setdefault(epoch, node)
        if other != node:
            raise Wrong(f"epoch {epoch} has two leaders, {other} and {node}")

    def opened(self, node: str, epoch: int) -> None:
        logs = {}
        for partition in PARTITIONS:
            image = self._disks[node].parts[partition].now
            values = self._disks[node].values(partition)
            logs[partition] = (image.first_lsn, values)
            end = max((mark for e, mark in self._ends[partition].items() if e < epoch), default=0)
            self._has_all(f"{node} opens epoch {epoch}", partition, image.first_lsn, values, end)
        self._opened[epoch] = logs
        self.last_opened = max(self.last_opened, epoch)

    def _has_all(self, who: str, partition: str, first: int, values: list[int], end: int) -> None:
        known = self.values[partition]
        if first > self.first[partition]:
            raise Wrong(f"{who}: {partition} begins at {first}, and retention went to {self.first[partition]}")
        wanted = [known[lsn] for lsn in range(first, end)] if first < end else []
        if values[: len(wanted)] != wanted:
            at = next((n for n, want in enumerate(wanted) if n >= len(values) or values[n] != want), 0)
            has = values[at] if at < len(values) else "nothing"
            raise Wrong(f"{who}: {partition} has {has} at lsn {first + at}, and {wanted[at]} is committed there")

    def committed(self, node: str, epoch: int, partition: str, lsn: int) -> None:
        known = self.values[partition]
        image = self._disks[node].parts[partition].now
        for at in range(max(image.first_lsn, self._known_from(partition, epoch, lsn)), lsn):
            value = image.value(at)
            if value is None:
                raise Wrong(f"{node} commits lsn {at} of {partition} in epoch {epoch}, and has nothing there")
            if known.setdefault(at, value) != value:
                raise Wrong(f"{node} commits {value} at lsn {at} of {partition} in epoch {epoch}, not {known[at]}")
            for newer in range(epoch + 1, self.last_opened + 1):
                if newer in self._opened:
                    first, values = self._opened[newer][partition]
                    if at >= first and (at - first >= len(values) or values[at - first] != value):
                        raise Wrong(
                            f"{node} commits {value} at lsn {at} of {partition} in epoch {epoch}, and epoch {newer}"
                            " is open without it"
                        )
        self.marks[partition] = max(lsn, self.marks[partition])
        self._ends[partition][epoch] = lsn

    def _known_from(self, partition: str, epoch: int, lsn: int) -> int:
        """A commit of the newest term is checked from the mark on: what is below was compared when it opened."""
        return self.marks[partition] if epoch >= self.last_opened else max(0, lsn - 32)

    def acked(self, partition: str, lsn: int, value: int, record: ShardRecord) -> None:
        if self.values[partition].get(lsn) != value:
            raise Wrong(f"{value} is acknowledged at lsn {lsn} of {partition}, and is not committed there")
        self.acknowledged += 1
        if lsn < self.first[partition]:
            return  # an old leader hears late of what retention has removed since
        for group in groups(record):
            if not self._is_kept(partition, lsn, value, group):
                raise Wrong(f"{value} is acknowledged, and is not synced at lsn {lsn} on a majority of {group}")

    def _is_kept(self, partition: str, lsn: int, value: int, group: list[str]) -> bool:
        has = sum(
            self._disks[each].is_doubted  # it may lack something, and has no vote until it has all
            or self._disks[each].parts[partition].durable.value(lsn) == value
            for each in group
        )
        return 2 * has > len(group)

    def check_kept(self, record: HasVoters) -> None:
        """4, of all that is not removed. While members change, one of the groups is what counted before."""
        for partition in PARTITIONS:
            first = max(self.first[partition], 0)
            end = self.marks[partition]
            if first >= end:
                continue
            known = self.values[partition]
            wanted = [known[lsn] for lsn in range(first, end)]
            whole = {name for name, disk in self._disks.items() if durable(disk, partition, first, end) == wanted}
            if any(2 * len(whole.intersection(group)) > len(group) for group in groups(record)):
                continue
            for lsn in range(first, end):
                if not any(self._is_kept(partition, lsn, known[lsn], group) for group in groups(record)):
                    raise Wrong(f"{known[lsn]} was committed at lsn {lsn} of {partition}: no majority has it any more")

    def trimmed(self, partition: str, first: int) -> None:
        self.first[partition] = max(first, self.first[partition])

    def check_disks(self) -> None:
        for name, disk in self._disks.items():
            if disk.faults:
                raise Wrong(f"{name}: {disk.faults[0]}")


def durable(disk: Disk, partition: str, first: int, end: int) -> list[int]:
    found: list[int] = []
    image = disk.parts[partition].durable
    for each in image.segments:
        if each.end_lsn > first and each.base_lsn < end:
            found += each.values[max(0, first - each.base_lsn) : end - each.base_lsn]
    return found


def groups(record: HasVoters) -> list[list[str]]:
    return [record.replicas] if record.old_replicas is None else [record.replicas, record.old_replicas]
