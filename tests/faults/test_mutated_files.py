"""Mutated files are given to everything that parses them: nothing crashes, and no wrong record is read.

Blind mutations leave no checksum right: what is read is what was written, or a gap. Mutations that know the format put
the checksums right again: whoever made them can make records, but must not crash a reader or a start."""

import time
from collections import Counter
from random import Random

import pytest

from commitlog import StoreError
from commitlog.chunk import HEADER_BYTES, decode_aux, maybe_header
from commitlog.errors import Damaged
from commitlog.format.manifest import decode_edits
from commitlog.format.segment import decode_segment_header
from commitlog.index.dictionary import decode_snapshot
from commitlog.index.index import decode_index
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    Seen,
    append,
    everything,
    index,
    mark,
    opened,
    some_records,
    view,
    viewed,
    write,
)
from tests.commitlog.test_damage import chunks_of
from tests.faults import mutate

FILES = 1_000_000
SEED = 11


class Victim:
    """A log with a finished segment, one left by a kill, and everything that stands beside them."""

    def __init__(self) -> None:
        files = SimulatedFiles()
        store = opened(files)
        for group in range(3):
            append(store.partitions[0], some_records(10, 10 * group), client_id="dev", tags={0: 9})
            write(store.partitions[0])
        index(store.partitions[0])
        store.close()
        files = files.after_kill()
        store = opened(files, seed=50)
        for group in range(3, 6):
            append(store.partitions[0], some_records(10, 10 * group), client_id="dev", tags={0: 9})
            write(store.partitions[0])
        mark(store.partitions[0])
        files = files.after_kill()
        self.content = {name: files.content(f"{DIRECTORY}/{name}") for name in files.names(DIRECTORY)}
        self.names = sorted(self.content)
        self.segments = [name for name in self.names if name.endswith(".seg")]
        self.chunks = {name: chunks_of(files, f"{DIRECTORY}/{name}") for name in self.segments}
        self.whole = viewed(view(files))[0]
        assert len(self.whole) == 60

    def files(self, name: str, content: bytes) -> SimulatedFiles:
        """The log with one file's content changed."""
        files = SimulatedFiles()
        files.make_directory(DIRECTORY)
        files.put("data/FORMAT", b"rumq 1\n")
        for each, whole in self.content.items():
            files.put(f"{DIRECTORY}/{each}", content if each == name else whole)
        return files

    def blind(self, chance: Random) -> tuple[str, bytes]:
        name, other = chance.choice(self.names), chance.choice(self.names)
        return name, mutate.blind(chance, self.content[name], self.content[other])

    def knowing(self, chance: Random) -> tuple[str, bytes]:
        name = chance.choice(self.names)
        content = self.content[name]
        if name.endswith(".seg"):
            how = chance.randrange(5)
            if how == 0:
                return name, mutate.segment_header(chance, content)
            at, end = chance.choice(self.chunks[name])
            if how < 3:
                return name, mutate.chunk_header(chance, content, at)
            return name, mutate.chunk_rows(chance, content, at, 320, end - at - HEADER_BYTES)
        if name.endswith(".idx"):
            return name, mutate.index(chance, content)
        if name == "MANIFEST":
            return name, mutate.manifest(chance, content)
        return name, mutate.snapshot(chance, content)


@pytest.fixture(scope="module")
def victim() -> Victim:
    return Victim()


def survives(files: SimulatedFiles, *, start: bool, names: bool = True) -> tuple[list[Seen], list[Seen]]:
    """Read it as another process does, check it, and start on it; what was read.

    start: do that as well; names: the numbers of topics can be trusted"""
    read: list[Seen] = []
    started: list[Seen] = []
    try:
        partition = view(files)
        if names:
            read = viewed(partition)[0]
        else:
            list(partition.chunks(0, 1 << 62))
        partition.find_offset(b"t/1", 3)
        partition.find_time(partition.segments()[0].first_ts if partition.segments() else 0)
        if start:
            list(verify(files, "data"))
            partition_started = opened(files, seed=99).partitions[0]
            if names:
                started = everything(partition_started)[0]
            partition_started.find_offset(b"t/1", 3).run()
            append(partition_started, [(b"t/1", b"more")])
            assert write(partition_started)
    except StoreError:
        pass  # refused, with what to do
    return read, started


def parse(name: str, content: bytes) -> None:
    """Only the parsers: many more in the same time."""
    if name.endswith(".seg"):
        try:
            decode_segment_header(content[:4096], name)
        except (Damaged, StoreError):
            pass
        for at in range(4096, len(content), 4096):
            header = maybe_header(content[at : at + HEADER_BYTES], int.from_bytes(content[at + 8 : at + 16], "little"))
            if header is not None:
                body = content[at + HEADER_BYTES : at + HEADER_BYTES + header.body_len]
                decode_aux(body[32 * header.count + header.frames_len :])
    elif name.endswith(".idx"):
        try:
            decode_index(
                content,
                name,
                int.from_bytes(content[8:16], "little"),
                int.from_bytes(content[16:24], "little"),
            )
        except Damaged:
            pass
    elif name == "MANIFEST":
        decode_edits(content)
    else:
        decode_snapshot(content)


def is_part(found: list[Seen], whole: list[Seen]) -> bool:
    """Whether each record found is the one that was written under its lsn."""
    by_lsn = {seen.lsn: seen for seen in whole}
    return all(by_lsn.get(seen.lsn) == seen for seen in found)


def blind_files(victim: Victim, chance: Random, count: int, *, starts: int) -> None:
    """starts: on one of so many a broker is started as well"""
    for number in range(count):
        name, content = victim.blind(chance)
        read, started = survives(victim.files(name, content), start=number % starts == 0)
        assert is_part(read, victim.whole) and is_part(started, victim.whole), (number, name)


def knowing_files(victim: Victim, chance: Random, count: int) -> None:
    for _ in range(count):
        name, content = victim.knowing(chance)
        survives(victim.files(name, content), start=True, names=False)


def test_blind_mutations_bring_no_wrong_record(victim: Victim) -> None:
    blind_files(victim, Random(SEED), 300, starts=2)


def test_mutations_with_right_checksums_crash_nothing(victim: Victim) -> None:
    knowing_files(victim, Random(SEED), 200)
    chance = Random(SEED + 1)
    for _ in range(3000):
        parse(*victim.knowing(chance))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_million_mutated_files(victim: Victim, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    blind_files(victim, Random(SEED), FILES // 10, starts=5)
    knowing_files(victim, Random(SEED + 1), FILES // 20)
    chance = Random(SEED + 2)
    for number in range(FILES - FILES // 10 - FILES // 20):
        name, content = victim.knowing(chance) if number % 2 else victim.blind(chance)
        counts[name.rpartition(".")[2]] += 1
        parse(name, content)
    with capsys.disabled():
        print(
            f"\n{FILES} mutated files, {FILES // 10} of them read blind, {FILES // 20} read with right checksums, the "
            f"others parsed {dict(counts)}: no crash, no wrong record; seed {SEED}; {time.monotonic() - begun:.0f} s"
        )
