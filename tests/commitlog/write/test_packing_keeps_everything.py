"""Packing keeps everything: of any log, whoever reads it in any way, before it and after it, after a crash and again.

The logs are random: runs, groups, topics, publishers whose names have left memory, tags, sources, flags, clocks."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from commitlog import Chunk, Gap, Partition, Store
from commitlog.chunk import FLAG_EXPIRY, FLAG_QOS, FLAG_RETAIN, FLAG_UNIFORM, FLAG_V5, last_of_each
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import NOW, client_ids, frame, index, mark, opened, pack, write

SEGMENT_BYTES = 60_000
MINUTES = 60_000_000
GAPS_US = (0, 0, 0, 1, 1_000_000, 20 * MINUTES, 51 * MINUTES)
RETAIN, EXPIRY, V5 = 4, 8, 16
HELD = "pid 1\n"


class Whole(NamedTuple):
    """All that the log says of a record. words: of its row, but for its frame's place and its time in its chunk"""

    lsn: int
    words: tuple[int, ...]
    ts: int
    frame: bytes
    topic: bytes
    client_id: bytes
    tag: int


def random_chunk(partition: Partition, random: Random, now: int) -> None:
    """Appends 1 to 200 records, mostly few, of publishers that come and go."""
    count = random.choice((1, 1, 1, 1, 2, 9, 60, 200))
    is_uniform = random.random() < 0.6
    form = random.choice((0, 1, 2, V5, V5 | 1))
    rows, frames, flags, tags = bytearray(), b"", 0, b""
    held = [partition.add_publisher(f"client-{random.randrange(12)}") for _ in range(2)]
    for number in range(count):
        topic = b"t/%d" % random.randrange(random.choice((2, 30)))
        topic_id = partition.topic_ids.get(topic)
        if topic_id is None:
            topic_id = partition.add_topic(topic)
        row_flags = form if is_uniform else random.choice((0, 1, 2)) | random.choice((0, RETAIN, EXPIRY | V5, V5))
        packet = frame(topic, random.randbytes(random.randrange(20)))
        row = bytearray(32)
        row[0:4], row[4:8] = topic_id.to_bytes(4, "little"), len(frames).to_bytes(4, "little")
        row[20:24] = (4 + len(topic)).to_bytes(4, "little")
        row[24:28] = random.choice((0, *held)).to_bytes(4, "little")
        row[28] = row_flags
        rows, frames = rows + row, frames + packet
        flags |= flags_of(row_flags)
        if row_flags & 3 == 2:
            tags += number.to_bytes(4, "little") + random.randbytes(4)
    if is_uniform and random.random() < 0.8:
        flags |= FLAG_UNIFORM
    sources = b""
    if random.random() < 0.2:
        sources = random.randrange(3).to_bytes(8, "little") + partition.next_lsn.to_bytes(8, "little")
    partition.append(rows, frames, count, flags, now, tags, sources)
    for publisher in held:
        partition.release_publisher(publisher)


def flags_of(row_flags: int) -> int:
    """The flags that a chunk with such a row needs."""
    wanted = ((3, FLAG_QOS), (V5, FLAG_V5), (EXPIRY, FLAG_EXPIRY), (RETAIN, FLAG_RETAIN))
    return sum(flag for bits, flag in wanted if row_flags & bits)


def run_of(partition: Partition, random: Random, now: int) -> int:
    """A run of a broker; returns the time at its end."""
    partition.publisher_names._kept_max = random.choice((0, 3, 100))
    for _ in range(random.choice((3, 12, 40))):
        for _ in range(random.choice((1, 1, 1, 3))):
            now += random.choice(GAPS_US)
            random_chunk(partition, random, now)
        write(partition, small=random.random() < 0.5)
        if random.random() < 0.5:
            mark(partition)
        if random.random() < 0.1:
            index(partition)
    return now


def whole(
    pieces: list[Chunk | Gap], names: Callable[[Chunk], dict[int, bytes]], topics: dict[int, bytes]
) -> list[Whole]:
    """Of chunks in order. Each has the flags that its records need, and says to be uniform only when it is."""
    found: list[Whole] = []
    for chunk in pieces:
        assert isinstance(chunk, Chunk), chunk
        words, clients = memoryview(chunk.rows).cast("B").cast("I").tolist(), names(chunk)
        raw = [int.from_bytes(chunk.tags[at : at + 4], "little") for at in range(0, len(chunk.tags), 4)]
        tags = dict(zip(raw[::2], raw[1::2], strict=True))
        forms = set()
        for row in range(chunk.count):
            w = words[8 * row : 8 * row + 8]
            end = words[8 * row + 9] if row + 1 < chunk.count else len(chunk.frames)
            packet = bytes(memoryview(chunk.frames)[w[1] : end])
            assert chunk.flags & flags_of(w[7]) == flags_of(w[7])
            forms.add(w[7] & 31)
            found.append(
                Whole(
                    chunk.base_lsn + row, (w[0], w[2], w[3], w[5], w[6], w[7]), chunk.base_ts + w[4], packet,
                    topics[w[0]], clients.get(w[6], b""), tags.get(row, 0),
                )
            )  # fmt: skip
        if chunk.flags & FLAG_UNIFORM:
            assert len(forms) == 1 and not forms.pop() & (RETAIN | EXPIRY)
    return found


def of_partition(partition: Partition) -> list[Whole]:
    pieces: list[Chunk | Gap] = []
    lsn = partition.first_lsn
    while lsn < partition.committed_lsn:
        pieces += (some := partition.cold_read(lsn, 1 << 20).run())
        lsn = some[-1].next_lsn
    return whole(pieces, lambda chunk: client_ids(partition, chunk), dict(enumerate(partition.topic_names)))


def of_view(view: PartitionView) -> list[Whole]:
    """names: of each range by itself, as a batch of an export has them"""
    topics = view.names()[0]
    return whole(
        list(view.chunks(0, view.end_lsn)), lambda chunk: view.publishers(chunk.base_lsn, chunk.next_lsn), topics
    )


def told(partition: Partition) -> tuple[list[tuple[int, bytes]], list[tuple[int, int]]]:
    """What a start takes of chunks: sources' last sequences, and records of QoS above 0."""
    sources, lsns = b"", []
    for chunk in partition.flagged(FLAG_QOS).run(partition.committed_lsn):
        words = memoryview(chunk.rows).cast("B").cast("I")[7::8]
        lsns += [(chunk.base_lsn + row, word & 3) for row, word in enumerate(words) if word & 3]
    for found in partition.cold_read(partition.first_lsn, 1 << 30).run():
        assert isinstance(found, Chunk)
        sources += found.sources
    return sorted((int.from_bytes(last[:8], "little"), last[8:]) for last in pairs(last_of_each(sources))), lsns


def pairs(sources: bytes) -> list[bytes]:
    return [sources[at : at + 16] for at in range(0, len(sources), 16)]


def searches(partition: Partition, view: PartitionView, records: list[Whole]) -> list[tuple[int, ...]]:
    """By time and by offset, to every record, in both processes."""
    found: list[tuple[int, ...]] = []
    for seen in records[:: max(1, len(records) // 60)]:
        offset = seen.words[1] | seen.words[2] << 32
        found += [
            (partition.find_time(seen.ts).run(), view.find_time(seen.ts), view.find_time(seen.ts + 1)),
            (partition.find_offset(seen.topic, offset).run(), view.find_offset(seen.topic, offset), seen.lsn),
        ]
    return found


def seen_beside(files: SimulatedFiles) -> PartitionView:
    return LogReader(files.beside(), "data").partitions()[0]


def findings(files: SimulatedFiles) -> list[object]:
    return [found for found in verify(files, "data") if found.severity != "note"]


def started(files: SimulatedFiles, durability: str, seed: int, now: int) -> tuple[Store, Partition]:
    store = opened(
        files, durability=durability, segment_bytes_max=SEGMENT_BYTES, segment_seconds_max=10**7, seed=seed,
        holder=HELD, now=now,
    )  # fmt: skip
    index(store.partitions[0])
    return store, store.partitions[0]


@example(seed=773658644, durability="disk", runs=3)  # chunks that are joined already, of a group that waited
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["disk", "process"]), st.integers(1, 3))
def test_whatever_the_log_it_is_read_the_same(seed: int, durability: str, runs: int) -> None:
    random = Random(seed)
    files, now = SimulatedFiles(choose=random.randrange), NOW
    for run in range(runs):
        store, partition = started(files, durability, 100 * run, now)
        now = run_of(partition, random, now) + random.choice(GAPS_US)
        if run + 1 < runs:
            if random.random() < 0.5:
                assert store.close() == []
            files = files.after_kill()
    index(partition)
    mark(partition)
    before, said = of_partition(partition), told(partition)
    earlier, used = seen_beside(files), seen_beside(files)
    assert of_view(used) == before[: used.end_lsn]
    found, names = searches(partition, earlier, before[: earlier.end_lsn]), seen_beside(files).names()
    task, size = partition.cold_read(0, 1 << 30), partition.segments.bytes
    packed = pack(partition)
    assert packed == 0 or partition.segments.bytes < size
    assert of_partition(partition) == before and told(partition) == said
    topics = dict(enumerate(partition.topic_names))
    assert whole(task.run(), lambda chunk: client_ids(partition, chunk), topics) == before
    later = seen_beside(files)
    for view in (earlier, used, later):
        assert of_view(view) == before[: view.end_lsn]
        assert searches(partition, view, before[: view.end_lsn]) == found
    assert later.names() == names and findings(files.beside()) == []
    lost = files.after_power_loss(lambda n: random.randrange(n)) if durability == "disk" else files.after_kill()
    store, again = started(lost, durability, 900, now)
    assert of_partition(again)[: len(before)] == before
    recovered = store.recovered[0]
    assert recovered.gaps == recovered.short == recovered.known_gaps == recovered.unreadable == []
    assert of_view(seen_beside(lost)) == before
    run_of(again, random, now)
    index(again)
    after = of_partition(again)
    assert after[: len(before)] == before
    sizes = [segment.disk_bytes for segment in again.segments.files]
    pack(again)
    assert of_partition(again) == after and findings(lost.beside()) == []
    assert all(s.disk_bytes <= old for s, old in zip(again.segments.files, sizes, strict=True))
