"""Digests of records: the same ones for the same records, however they are cut into chunks, and others for others."""

from collections.abc import Callable

from commitlog import Partition
from commitlog.read.copy_digest import CopyDigest, copy_digest, marked_view
from commitlog.read.record_digest import record_digest
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, NOW, append, index, mark, opened, pack, viewed, write

ROOT, KEY = "data", DIRECTORY.removeprefix("data/")


def log(change: Callable[[int], bytes] = lambda n: b"", *, tag: int = 7, ts: int = 0, who: str = "a") -> SimulatedFiles:
    """Lone messages in several segments; as they are by default, or with one changed."""
    files = SimulatedFiles()
    partition: Partition = opened(files, segment_bytes_max=60_000).partitions[0]
    for n in range(60):
        other = n == 31
        records = [(b"t%d" % (n % 3), b"payload %d" % n + change(n)), (b"same", b"%d" % n)]
        append(partition, records, NOW + 1000 * n + other * ts, who if other else "a", {0: tag if other else 7})
        write(partition)
        mark(partition)
    index(partition)
    return files


def digests(files: SimulatedFiles, bytes_max: int = 1 << 20, *, start: int = 0, end: int = 100) -> list[CopyDigest]:
    view = marked_view(files, ROOT, KEY)
    assert view is not None
    found = []
    while start < end:
        found.append(record_digest(view, start, end, bytes_max))
        start = found[-1].next_lsn
    return found


def packed() -> SimulatedFiles:
    files = log()
    again = opened(files.after_kill(), segment_bytes_max=60_000, seed=9)
    partition = again.partitions[0]
    append(partition, [(b"t", b"later")])
    write(partition)
    index(partition)
    assert pack(partition) > 1
    return partition.files  # type: ignore[return-value]


def test_a_packed_copy_has_the_digests_of_one_that_is_not() -> None:
    plain, other = log(), packed()
    assert copy_digest(plain, *whole(plain)).segments != copy_digest(other, *whole(other)).segments
    for bytes_max in (1, 90, 1000, 5000, 1 << 20):
        for start, end in ((0, 100), (7, 93)):
            found = digests(plain, bytes_max, start=start, end=end)
            assert found == digests(other, bytes_max, start=start, end=end)
            assert found[-1].next_lsn == end
            covered = [lsn for one in found for s in one.segments for lsn in range(s.base_lsn, s.end_lsn)]
            assert covered == list(range(start, end)), "each record once"


def whole(files: SimulatedFiles):  # type: ignore[no-untyped-def]
    view = marked_view(files, ROOT, KEY)
    assert view is not None
    return view, 0, 100, 1 << 30


def test_any_other_record_has_another_digest() -> None:
    """Its payload, its time, its publisher and its QoS 2 tag; and what is cut differently between two of them."""
    plain = digests(log())
    for other in (
        log(lambda n: b"!" if n == 31 else b""),
        log(lambda n: b"0" if n == 31 else b""),
        log(tag=8),
        log(ts=1),
        log(who="b"),
    ):
        assert digests(other) != plain
    assert digests(log()) == plain


def test_what_cannot_be_read_has_another_digest() -> None:
    files, damaged = log(), log()
    view = marked_view(damaged, ROOT, KEY)
    assert view is not None and viewed(view)[1] == []
    damaged.damage(view.segments()[0].path, 4096 + 200)
    assert digests(damaged) != digests(files)
    assert digests(damaged)[-1].next_lsn == 100, "it goes on behind"
