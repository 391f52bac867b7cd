"""Where a request reads on: cursors over several partitions, new ones, retention, and copies that are behind."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.gateway.records import records as module
from rumq.gateway.records.partition_views import PartitionViews, newest_of, stamp_of
from rumq.gateway.records.record_rows import Looked, RecordSelection
from rumq.gateway.records.records import ServedRecords, begin_of, text_of
from tests.gateway.handlers.test_event_stream import record

WANTED = RecordSelection("#", lambda topic: True, 0)
P0, P1 = "main/g1/p0", "main/g1/p1"


def view(name: str, first_lsn: int, end_lsn: int) -> Any:
    return SimpleNamespace(name=name, first_lsn=first_lsn, end_lsn=end_lsn)


class Log:
    """Partitions of which every record is wanted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *views: Any) -> None:
        self.views = list(views)
        monkeypatch.setattr(module, "looked_at", self.looked_at)
        self.served = ServedRecords("")
        self.served.views = self  # type: ignore[assignment]

    def current(self) -> list[Any]:
        return self.views

    def looked_at(self, view: Any, names: object, wanted: RecordSelection, lsn: int) -> Any:
        for each in range(max(lsn, view.first_lsn), view.end_lsn):
            yield Looked(each + 1, 1, record(each, view.name))


def test_a_partition_that_is_new_since_the_cursor_is_read_from_its_begin() -> None:
    begin, lost = begin_of([view(P0, 0, 9), view(P1, 3, 5)], WANTED, "latest", text_of({P0: 4}))
    assert (begin, lost) == ({P0: 4, P1: 3}, 0)


def test_what_retention_has_removed_behind_the_cursor_is_counted() -> None:
    begin, lost = begin_of([view(P0, 100, 120)], WANTED, "earliest", text_of({P0: 40}))
    assert (begin, lost) == ({P0: 100}, 60)


def test_a_partition_that_is_not_here_keeps_its_place_in_the_cursor() -> None:
    begin, _ = begin_of([view(P0, 0, 9)], WANTED, "earliest", text_of({P0: 4, P1: 77}))
    assert begin == {P0: 4, P1: 77}


def test_a_copy_that_is_behind_the_node_of_the_cursor_gives_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind = view(P0, 0, 50)
    log = Log(monkeypatch, behind)
    found = log.served.piece(WANTED, "earliest", text_of({P0: 60}), 100)
    assert (found.records, found.end, found.is_more) == ([], {P0: 60}, False)
    behind.end_lsn = 62
    found = log.served.piece(WANTED, "earliest", text_of(found.end), 100)
    assert [each.lsn for each in found.records] == [60, 61]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_busy_partition_does_not_keep_another_one_waiting(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    busy, calm = view(P0, 0, 1000), view(P1, 0, 500)
    log = Log(monkeypatch, busy, calm)
    cursor = ""
    for _ in range(3):
        found = log.served.piece(WANTED, "earliest", cursor or None, limit)
        cursor = text_of(found.end)
        if any(each.partition == P1 for each in found.records):
            return
        busy.end_lsn += 900
    raise AssertionError("nothing came of the calm one")


def test_pieces_of_any_size_join_to_the_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (1, 7, 10, 1000):
        log = Log(monkeypatch, view(P0, 0, 30), view(P1, 5, 25))
        got, cursor, is_more = [], None, True
        while is_more:
            found = log.served.piece(WANTED, "earliest", cursor, limit)
            got += [(each.partition, each.lsn) for each in found.records]
            cursor, is_more = text_of(found.end), found.is_more
        assert sorted(got) == [(P0, n) for n in range(30)] + [(P1, n) for n in range(5, 25)], limit


def test_a_write_or_a_new_file_changes_the_stamp_of_a_partition(tmp_path: Path) -> None:
    def stamp() -> object:
        return stamp_of(str(tmp_path), newest_of(str(tmp_path)))

    (tmp_path / "a.seg").write_bytes(b"1")
    (tmp_path / "MANIFEST").write_bytes(b"1")
    seen = [stamp()]
    assert stamp() == seen[0]
    (tmp_path / "a.seg").write_bytes(b"12")
    seen.append(stamp())
    (tmp_path / "MANIFEST").write_bytes(b"12")
    seen.append(stamp())
    (tmp_path / "b.seg").write_bytes(b"1")
    seen.append(stamp())
    assert len(set(seen)) == 4


def test_views_are_made_anew_after_a_second_whatever_the_files_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Reader:
        def __init__(self, *args: object, **more: object) -> None: ...

        def names(self) -> list[str]:
            return [P0]

        def maybe_partition(self, name: str, earlier: object) -> Any:
            made.append(earlier)
            return view(name, 0, len(made))

    now = [0.0]
    monkeypatch.setattr("rumq.gateway.records.partition_views.LogReader", Reader)
    views = PartitionViews(str(tmp_path), lambda: now[0])
    assert [views.ends(), views.ends()] == [{P0: 1}, {P0: 1}] and len(made) == 1
    now[0] = 1.0
    assert views.ends() == {P0: 2} and made[1] is not None
