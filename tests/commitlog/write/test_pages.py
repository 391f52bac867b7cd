"""With durability `disk` a page that has acknowledged records is never written again: a write that is torn by a power
loss takes none of them along. A mark is no record: the group behind it shares its page."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog import Partition
from commitlog.chunk import SYNC_ALIGN
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    NOW,
    append,
    everything,
    mark,
    opened,
    preallocate,
    segments,
    some_records,
    view,
    viewed,
    write,
)

DIRECT = 20_000  # from there on past the page cache
HOUR_US = 3_600_000_000


class Pages(SimulatedFiles):
    """kept: by file, pages that may not be written again; direct: positions of what bypassed the page cache"""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, set[int]] = {}
        self.direct: list[int] = []
        self.zeros = 0  # bytes written ahead

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        _, path = self._of(handle)
        size = sum(map(len, buffers))
        if size:
            written = set(range(position // SYNC_ALIGN, (position + size - 1) // SYNC_ALIGN + 1))
            assert not written & self.kept.get(path, set()), f"{path} at {position}: acknowledged before"
        super().write(handle, position, buffers)

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        self.direct.append(position)
        if not any(data):
            self.zeros += len(data)
        super().write_direct(handle, path, position, data)

    def keep(self, partition: Partition) -> None:
        """Everything so far is acknowledged: its pages stay as they are."""
        writer = partition.writer
        self.kept[writer.path] = set(range((writer.position - 1) // SYNC_ALIGN + 1))


def ahead(partition: Partition) -> int:
    return partition.writer.position % SYNC_ALIGN


@pytest.mark.parametrize("small", [True, False])
def test_a_lone_message_takes_one_page_with_its_mark(small: bool) -> None:
    files = Pages()
    partition = opened(files).partitions[0]
    for n in range(50):
        append(partition, some_records(1, n), NOW + n)
        write(partition, small=small)
        assert ahead(partition) == 0, "a group ends its page"
        files.keep(partition)
        preallocate(partition)
        mark(partition)
        assert ahead(partition) == 128, "a mark begins one"
    assert partition.writer.position == SEGMENT_HEADER_BYTES + 50 * SYNC_ALIGN + 128
    before, gaps = everything(partition)
    assert len(before) == 50 and gaps == []
    assert viewed(view(files.beside())) == (before, []), "each is marked"
    assert everything(opened(files.after_power_loss(lambda n: 0), seed=1).partitions[0]) == (before, [])


@given(
    steps=st.lists(
        st.sampled_from(["one", "many", "large", "new names", "apart", "mark", "room", "roll"]), max_size=40
    ),
    small=st.booleans(),
)  # fmt: skip
def test_no_page_with_acknowledged_records_is_written_again(steps: list[str], small: bool) -> None:
    files = Pages()
    partition = opened(files, direct_bytes_min=DIRECT, segment_bytes_max=100_000).partitions[0]
    now, count = NOW, 0
    for number, step in enumerate(steps):
        now += 1000
        if step == "mark":
            mark(partition)
        elif step == "room":
            preallocate(partition, always=True)
        elif step == "roll":
            group = partition.take_roll(now)
            if group is not None:
                group.run()
                partition.complete(group)
        else:
            size = {"many": 30, "large": 600}.get(step, 1)
            records = [(b"n/%d" % number, b"x")] if step == "new names" else some_records(size, count)
            append(partition, records, now)
            count += len(records)
            if step == "apart":  # as after a jump of the clock: more than one chunk of a group
                now += HOUR_US
                append(partition, some_records(1, count), now)
                count += 1
            assert write(partition, small=small)
            assert ahead(partition) == 0
            files.keep(partition)
    assert all(position % SYNC_ALIGN == 0 for position in files.direct)
    found, gaps = everything(partition)
    assert [seen.lsn for seen in found] == list(range(count)) and gaps == []
    mark(partition)
    assert viewed(view(files.beside()))[0] == found[: view(files.beside()).end_lsn]
    assert everything(opened(files.after_power_loss(lambda n: 0), seed=99, now=now).partitions[0]) == (found, [])


def test_zeros_ahead_are_not_written_for_a_mark() -> None:
    files = Pages()
    partition = opened(files).partitions[0]
    for n in range(40):
        append(partition, some_records(1, n), NOW + n)
        write(partition)
        preallocate(partition)
        mark(partition)
    assert len(segments(files)) == 1 and files.zeros <= 65_536 * 4
