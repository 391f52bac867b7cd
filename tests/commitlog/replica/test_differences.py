"""A follower that does what `difference` says, and takes what is sent from there on, has the leader's log."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog.replica.differences import difference
from commitlog.replica.inventory import SegmentState

HEADER = 4096


@dataclass
class Segment:
    """chunks: (records, bytes) of each"""

    name: str
    base_lsn: int
    chunks: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def end_lsn(self) -> int:
        return self.base_lsn + sum(count for count, _ in self.chunks)

    @property
    def content(self) -> bytes:
        return b"h" * HEADER + b"".join(raw for _, raw in self.chunks)

    def first_chunks(self, count: int) -> "Segment":
        return Segment(self.name, self.base_lsn, self.chunks[:count])

    def state(self, is_done: bool) -> SegmentState:
        return SegmentState(self.name, self.base_lsn, self.end_lsn, len(self.content), is_done)


Log = list[Segment]


def states(log: Log, is_done: bool) -> list[SegmentState]:
    return [one.state(is_done or at < len(log) - 1) for at, one in enumerate(log)]


def records(log: Log) -> list[tuple[int, str, bytes]]:
    """(lsn, segment, chunk) of each chunk with records."""
    found = []
    for segment in log:
        lsn = segment.base_lsn
        for count, raw in segment.chunks:
            if count:
                found.append((lsn, segment.name, raw))
            lsn += count
    return found


def after(ours: Log, theirs: Log, is_done: bool) -> Log:
    """The follower's log when it has cut it, and was sent the rest."""
    found = difference(states(ours, is_done), states(theirs, False))
    first_lsn = ours[0].base_lsn if ours else 0
    log = [one for one in theirs if one.name not in found.drop and one.base_lsn >= first_lsn]
    if found.name:
        last = log[-1]
        assert last.name == found.name
        log[-1] = next(c for n in range(len(last.chunks) + 1) if len((c := last.first_chunks(n)).content) == found.stop)
        assert log[-1].end_lsn == found.end_lsn
    if found.position:
        assert log[-1].name == ours[found.send_index].name, "it is continued at its end"
        assert len(log[-1].content) == found.position
        del log[-1]
    log += ours[found.send_index :]
    return log


CHUNK = st.tuples(st.integers(0, 3), st.sampled_from([64, 128, 4096]))


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[Log, Log]:
    """Logs with a common beginning; then each has what it alone has written. Either may have removed old segments."""
    made = 0

    def segment(base_lsn: int, owner: str) -> Segment:
        nonlocal made
        made += 1
        chunks = draw(st.lists(CHUNK, max_size=4))
        return Segment(
            f"{owner}{made}",
            base_lsn,
            [(n, f"{owner}{made}.{i} ".encode().ljust(size, b".")) for i, (n, size) in enumerate(chunks)],
        )

    common: Log = []
    for _ in range(draw(st.integers(0, 4))):
        common.append(segment(common[-1].end_lsn if common else 0, "c"))
    logs = []
    for owner in ("l", "f"):
        log = list(common)
        if log:
            log[-1] = log[-1].first_chunks(draw(st.integers(0, len(log[-1].chunks))))
            while draw(st.booleans()) and log:  # it has less of it
                log.pop()
        for _ in range(draw(st.integers(0, 3))):
            log.append(segment(log[-1].end_lsn if log else 0, owner))
        # Nobody's records are in a segment without any: one node opened it, and not the other.
        for at in range(len(log), 0, -1):
            if draw(st.integers(0, 5)) == 0:
                made += 1
                log.insert(at, Segment(f"e{made}", log[at - 1].end_lsn))
        logs.append(log[draw(st.integers(0, max(0, len(log) - 1))) :])
    return logs[0], logs[1]


@settings(max_examples=1500, deadline=None)
@given(two_logs(), st.booleans())
def test_the_follower_has_the_leaders_log(logs: tuple[Log, Log], is_done: bool) -> None:
    ours, theirs = logs
    log = after(ours, theirs, is_done)
    first = log[0].base_lsn if log else 0
    assert records(log) == [one for one in records(ours) if one[0] >= first]
    for segment in log:
        same = [one for one in ours if one.name == segment.name]
        assert not segment.chunks or segment.content == same[0].content, "byte for byte"
    reached = first
    for segment in log:
        assert segment.base_lsn == reached
        reached = segment.end_lsn
    assert reached == (ours[-1].end_lsn if ours else 0) or not log


@settings(max_examples=500, deadline=None)
@given(two_logs(), st.booleans())
def test_nothing_that_the_leader_has_is_dropped(logs: tuple[Log, Log], is_done: bool) -> None:
    """A follower that only lags, or began later, keeps all of what it has."""
    ours, theirs = logs
    found = difference(states(ours, is_done), states(theirs, False))
    shared = records(ours)
    if all(one in shared for one in records(theirs)):
        assert not records([one for one in theirs if one.name in found.drop])
        assert not found.name or found.end_lsn == theirs[-1].end_lsn or found.end_lsn >= theirs[0].end_lsn


def state(name: str, base_lsn: int, end_lsn: int, stop: int = 8192, is_done: bool = True) -> SegmentState:
    return SegmentState(name, base_lsn, end_lsn, stop, is_done)


A, B, C = state("a", 0, 10), state("b", 10, 20), state("c", 20, 25, is_done=False)


@pytest.mark.parametrize(
    ("why", "theirs", "expected"),
    [
        ("a new follower", [], ([], "", 0, 0, 0, 0)),
        ("it has everything", [A, B, C], ([], "", 0, 0, 2, 8192)),
        ("it lags by a segment", [A, B], ([], "", 0, 0, 2, 0)),
        ("it lags in a segment", [A, B._replace(end_lsn=15, stop=6000)], ([], "", 0, 0, 1, 6000)),
        ("it lacks the seal", [A, B._replace(stop=8064)], ([], "", 0, 0, 1, 8064)),
        ("it is ahead", [A, B, C._replace(end_lsn=30, stop=9000)], ([], "c", 25, 8192, 2, 8192)),
        ("it has a mark more", [A, B, C._replace(stop=8320)], ([], "c", 25, 8192, 2, 8192)),
        ("it has what was abandoned", [A, B._replace(end_lsn=22, stop=9000)], ([], "b", 20, 8192, 2, 0)),
        ("another leader's tail", [A, B, state("x", 20, 40)], (["x"], "", 0, 0, 2, 0)),
        ("another leader's, earlier", [A, state("x", 10, 40), state("y", 40, 40)], (["x", "y"], "", 0, 0, 1, 0)),
        ("an empty segment of another", [A, state("x", 10, 10, 4096), B], (["x"], "", 0, 0, 2, 0)),
        ("it has removed old ones", [B, C], ([], "", 0, 0, 2, 8192)),
        ("it has a hole", [A, C], (["c"], "", 0, 0, 1, 0)),
        ("it has a hole in a segment", [A, B._replace(end_lsn=15, stop=6000), C], (["c"], "", 0, 0, 1, 6000)),
        ("it has another beginning", [state("x", 0, 10), B, C], (["x", "b", "c"], "", 0, 0, 0, 0)),
        ("nothing in common", [state("x", 0, 7), state("y", 7, 90)], (["x", "y"], "", 0, 0, 0, 0)),
    ],
)
def test_cases(why: str, theirs: list[SegmentState], expected: tuple[object, ...]) -> None:
    assert difference([A, B, C], theirs)[:6] == expected, why


def test_what_the_leader_has_removed_is_not_dropped_twice() -> None:
    """It is removed as being below the leader's first lsn."""
    assert difference([B, C], [A, B])[:6] == ([], "", 0, 0, 1, 0)
    assert difference([C], [A, B._replace(end_lsn=15)])[:6] == (["a", "b"], "", 0, 0, 0, 0)
