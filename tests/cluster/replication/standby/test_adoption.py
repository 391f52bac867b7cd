"""R3: of those with the highest opened epoch, the longest log of each partition is adopted."""

from typing import Any

from rumq.cluster.replication import messages as m
from rumq.cluster.replication.standby.adoption import Adoption, maybe_doubt


class Logs:
    """applied: frames; synced: how often; end: of the partition, once it is synced; is_emptied: by a cut"""

    def __init__(self) -> None:
        self.applied: list[m.ReplicaMessage] = []
        self.synced, self.end = 0, 9
        self.is_emptied = False

    def ends(self) -> dict[str, int]:
        return {"p": self.end}

    def inventory(self, partition: str) -> list[m.SegmentInfo]:
        return []

    def marks(self) -> dict[str, int]:
        return {"p": 4}

    def begins_anew(self, cut: m.Cut) -> bool:
        return self.is_emptied

    def apply(self, frame: Any, raw: memoryview) -> None:
        self.applied.append(frame)

    def sync(self) -> None:
        self.synced += 1


class State:
    """marks: as noted"""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}

    def note_cut(self, partition: str) -> None: ...

    def note_copies(self, marks: dict[str, int], held: dict[str, Any]) -> None:
        assert not held
        self.marks |= marks


def adoption(logs: Logs, state: State | None = None, **promised: tuple[int, dict[str, int]]) -> Adoption:
    """promised: by node, (opened, ends); n1 is the claimant"""
    answers = {node: m.Promised(9, opened, ends) for node, (opened, ends) in promised.items()}
    return Adoption(9, "n1", answers, logs, state or State(), [])  # type: ignore[arg-type]


def questions(found: Adoption) -> list[tuple[str, str]]:
    asked = []
    while (ask := found.next_question()) is not None:
        asked.append((ask[0], ask[1].partition))
    return asked


def test_who_has_the_best_log_asks_nobody() -> None:
    assert questions(adoption(Logs(), n1=(4, {"p": 9}), n2=(4, {"p": 9}), n3=(3, {"p": 99}))) == []


def test_each_partition_is_fetched_from_the_longest_copy_of_the_last_term() -> None:
    found = adoption(Logs(), n1=(4, {"p": 9, "q": 5}), n2=(4, {"p": 9, "q": 7}), n3=(3, {"p": 99, "q": 99}))
    assert questions(found) == [("n2", "q")]


def test_a_longer_log_of_an_older_term_is_given_up() -> None:
    assert questions(adoption(Logs(), n1=(3, {"p": 99}), n2=(4, {"p": 9}))) == [("n2", "p")]


def test_a_copy_in_doubt_is_no_source_and_asks_for_everything() -> None:
    found = adoption(Logs(), n1=(m.DOUBTED, {"p": 9}), n2=(0, {"p": 3}), n3=(m.DOUBTED, {"p": 50}))
    assert questions(found) == [("n2", "p")]


def test_what_the_source_sends_is_applied_and_synced_at_its_end_and_others_are_ignored() -> None:
    logs = Logs()
    found = adoption(logs, n1=(3, {"p": 0}), n2=(4, {"p": 9}))
    found.next_question()
    cut, write = m.Cut(9, "p", [], "", 0, 0, 0), m.Write(9, "p", "s", 4096)
    nothing = memoryview(b"")
    assert not found.took("n3", cut, nothing) and not found.took("n2", m.Write(9, "q", "s", 0), nothing)
    assert logs.applied == []
    assert not found.took("n2", cut, nothing) and not found.took("n2", write, nothing)
    assert logs.applied == [cut, write] and logs.synced == 0
    assert found.took("n2", m.Fetched(9, "p"), nothing) and logs.synced == 1
    assert found.next_question() is None and found.source == ""


def test_a_source_that_was_emptied_since_its_promise_is_found_out() -> None:
    logs = Logs()
    found = adoption(logs, n1=(3, {"p": 0}), n2=(4, {"p": 9}))
    found.next_question()
    logs.end = 0
    assert found.took("n2", m.Fetched(9, "p"), memoryview(b"")) and found.is_short


def test_two_leaders_of_one_epoch_and_marks_above_the_log_are_doubts() -> None:
    one, other = m.Promised(9, 4, {"p": 5}, "one"), m.Promised(9, 4, {"p": 9}, "other")
    assert "n1 and n2 have logs of different leaders of epoch 4" in str(maybe_doubt({"n1": one, "n2": other}))
    older = m.Promised(9, 3, {"p": 99}, "third", marks={"p": 5})
    assert maybe_doubt({"n1": one, "n3": older}) is None
    lost = m.Promised(9, m.DOUBTED, {"p": 0}, marks={"p": 6})
    assert "n3 knows that p is committed up to lsn 6" in str(maybe_doubt({"n1": one, "n3": lost}))


def test_a_claimants_copy_that_is_emptied_notes_its_mark_before() -> None:
    logs, state = Logs(), State()
    found = adoption(logs, state, n1=(3, {"p": 9}), n2=(4, {"p": 9}))
    found.next_question()
    found.took("n2", m.Cut(9, "p", ["s"], "", 0, 0, 0), memoryview(b""))
    assert not state.marks
    logs.is_emptied = True
    found.took("n2", m.Cut(9, "p", ["s"], "", 0, 0, 0), memoryview(b""))
    assert state.marks == {"p": 4} and len(logs.applied) == 2
