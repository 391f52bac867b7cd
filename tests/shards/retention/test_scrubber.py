"""The scrubber: damage in a finished segment is told once, whatever the pass; nothing is told of sound ones."""

from collections.abc import Callable
from typing import Any

from commitlog import Store
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.retention.scrubber import Scrubber
from tests.commitlog.records import append, opened, some_records, write


class Now:
    """A worker that does its work at once, and a clock that is turned by hand."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    def submit(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None], lane: int = 0) -> None:
        try:
            result = job()
        except Exception as fault:
            done(None, fault)
        else:
            done(result, None)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.waiting.append((seconds, call))

    def next_turn(self, call: Callable[[], None]) -> None: ...
    def after_step(self, call: Callable[[], None]) -> None: ...

    def tell(self, name: str, /, **fields: Any) -> None:
        self.events.append((name, fields))

    def turn(self) -> float:
        """What was asked for next happens; returns after how many seconds."""
        ((seconds, call),) = self.waiting
        self.waiting.clear()
        call()
        return seconds


def filled(files: SimulatedFiles) -> Store:
    store = opened(files, segment_bytes_max=12_000)
    for first in range(0, 100, 10):
        append(store.partitions[0], some_records(10, first))
        write(store.partitions[0])
    return store


def scrubbed(store: Store, files: SimulatedFiles, rate: int = 1000) -> tuple[Scrubber, Now]:
    now = Now()
    scrubbing = Scrubber(files, store.own, now, now, now, bytes_per_second=rate)
    scrubbing.begin()
    return scrubbing, now


def finished(store: Store) -> list[Any]:
    return [s for s in store.partitions[0].segments.files if s.end_lsn is not None]


def test_sound_segments_are_read_at_the_rate_and_nothing_is_told() -> None:
    files = SimulatedFiles()
    store = filled(files)
    scrubbing, now = scrubbed(store, files)
    now.turn()
    waits = []
    while not scrubbing.passes:
        waits.append(now.turn())
    assert waits == [segment.bytes / 1000 for segment in finished(store)]
    assert len(waits) >= 2 and not now.events


def test_a_rate_of_nothing_switches_it_off() -> None:
    files = SimulatedFiles()
    assert not scrubbed(filled(files), files, rate=0)[1].waiting


def test_damage_is_told_once_with_its_range() -> None:
    files = SimulatedFiles()
    store = filled(files)
    segment = finished(store)[1]
    handle = files.open(segment.path, write=True)
    place = segment.places[0] if segment.places else None
    position = (place.position if place else 4096) + 300
    byte = files.read(handle, position, 1)
    files.write(handle, position, [bytes([byte[0] ^ 4])])
    files.close(handle)
    scrubbing, now = scrubbed(store, files)
    while scrubbing.passes < 3:
        now.turn()
    ((name, fields),) = now.events
    assert name == "log.gap"
    assert fields["first_lsn"] == segment.base_lsn < fields["next_lsn"] <= segment.end_lsn
    assert segment.path in fields["why"]


def test_a_segment_that_retention_took_meanwhile_is_no_fault() -> None:
    files = SimulatedFiles()
    store = filled(files)
    gone = finished(store)[0]
    scrubbing, now = scrubbed(store, files)
    files.remove(gone.path)
    while not scrubbing.passes:
        now.turn()
    assert not now.events
