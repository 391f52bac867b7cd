"""Entries are the journal's on-disk format: tags stay, fields are added at the end.

docs/reference/session-journal.md."""

import msgspec
import pytest

from rumq.session.journal import entries as e
from rumq.session.journal.recorder import opened_entry
from rumq.session.journal.replayed_state import ReplayedState
from rumq.session.state.session import Session
from rumq.session.state.session_owner import ANYBODY, Owner
from rumq.session.state.wills import Author

TAGS = {
    "layout", "opened", "will", "left", "ended", "subscribed", "unsubscribed", "placed", "merged", "sent", "acked",
    "open", "window", "shared", "tide", "retained", "begun", "snapshot",
}  # fmt: skip


def test_the_tags_of_a_journal_on_disk_are_these() -> None:
    assert {str(each.__struct_config__.tag) for each in e.Entry.__subclasses__()} == TAGS


def test_an_entry_is_an_array_that_begins_with_its_tag() -> None:
    entries: list[e.JournalEntry] = [
        e.Left(7, 5, 60, {1: [8]}),
        e.Checkpoint(5, [1], [2], [3], [4], {7: {1: [0]}}, {"$share/g/a": e.SharedCheckpoint([1], [(0, 1, 2)])}),
        e.ReplayPlaced(7, 2, [9]),
    ]
    assert msgspec.msgpack.decode(e.encode_entries(entries)) == [
        ["left", 7, 5, 60, {1: [8]}, [], 0],
        ["tide", 5, [1], [2], [3], [4], {7: {1: [0]}}, {"$share/g/a": [[1], [[0, 1, 2]], []]}, []],
        ["placed", 7, 2, [9]],
    ]
    assert e.decode_entries(e.encode_entries(entries)) == entries


def test_an_author_is_an_array_in_its_will() -> None:
    will = e.WillEntry(7, 0, b"x", Author("anna", ["ops"], [], "inside", "user anna"))
    assert msgspec.msgpack.decode(e.encode_entries([will])) == [
        ["will", 7, 0, b"x", ["anna", ["ops"], [], "inside", "user anna"]]
    ]
    before = msgspec.msgpack.encode([["will", 7, 0, b"x", ["anna", ["ops"], [], "inside"]]])
    assert e.decode_entries(before) == [e.WillEntry(7, 0, b"x", Author("anna", ["ops"], [], "inside"))]


def test_what_is_no_list_of_entries_is_refused() -> None:
    for record in (
        b"",
        b"\x00",
        msgspec.msgpack.encode([["unheard of", 1]]),
        msgspec.msgpack.encode(["ended"]),
    ):
        with pytest.raises(ValueError):
            e.decode_entries(record)


def test_an_older_journal_is_read() -> None:
    old = msgspec.msgpack.encode([["opened", 7, "pump", 5, 100, False], ["will", 7, 3, b""]])
    first, will = e.decode_entries(old)
    assert first == e.SessionOpened(7, "pump", 5, 100, False)
    assert isinstance(will, e.WillEntry) and will.author is None
    replayed = ReplayedState()
    replayed.apply([first])
    assert replayed.sessions[7].owner is None


def test_orders_are_an_array_in_a_layout() -> None:
    entry = e.Layout(
        ("main/g1/p0",),
        (e.StandingOrder("ban", "user", "eve", 1_700_000_060_000_000, 60.0), e.StandingOrder("drain")),
    )
    assert msgspec.msgpack.decode(e.encode_entries([entry])) == [
        [
            "layout",
            ["main/g1/p0"],
            [["ban", "user", "eve", 1_700_000_060_000_000, 60.0], ["drain", "", "", 0, 0.0]],
            0,
            [],
        ]
    ]
    assert e.decode_entries(e.encode_entries([entry])) == [entry]


def test_a_journal_without_orders_is_read() -> None:
    old = msgspec.msgpack.encode([["layout", ["main/g1/p0"]], ["begun"]])
    assert e.decode_entries(old) == [e.Layout(("main/g1/p0",)), e.SnapshotBegun()]


def test_a_version_without_orders_reads_a_journal_that_has_them() -> None:
    """A node of the version before may lead a shard next: it has no orders and no kept values then, and everything
    else."""

    class LayoutBefore(msgspec.Struct, frozen=True, array_like=True, tag="layout"):
        partitions: tuple[str, ...]

    class BegunBefore(msgspec.Struct, frozen=True, array_like=True, tag="begun"):
        pass

    order = e.StandingOrder("drain", until_us=e.FOREVER_US)
    kept = (e.KeptValue(b"name", b"value"),)
    record = e.encode_entries([e.Layout(("a", "b"), (order,), kept=kept), e.SnapshotBegun()])
    found = msgspec.msgpack.decode(record, type=list[LayoutBefore | BegunBefore])
    assert found == [LayoutBefore(("a", "b")), BegunBefore()]


@pytest.mark.parametrize(
    ("order", "left"),
    [
        (e.StandingOrder("ban", "client", "c", 70_000_000, 60.0), 60.0),
        (e.StandingOrder("ban", "client", "c", 40_000_000, 60.0), 30.0),
        (e.StandingOrder("ban", "client", "c", 10_000_000, 60.0), 0.0),
        (e.StandingOrder("ban", "client", "c", 900_000_000, 60.0), 60.0),
    ],
)
def test_an_order_lasts_as_the_wall_clock_says_and_never_longer_than_it_was_given(
    order: e.StandingOrder, left: float
) -> None:
    assert order.seconds_left(10_000_000) == left


def test_an_order_without_a_time_lasts() -> None:
    assert e.StandingOrder("drain", until_us=e.FOREVER_US).seconds_left(1_700_000_000_000_000) > 1e9


@pytest.mark.parametrize(
    "owner", [None, ANYBODY, Owner("alice", ""), Owner(None, "site-7/"), Owner("", ""), Owner("?", "a/")]
)
def test_a_journal_says_whose_a_session_is(owner: Owner | None) -> None:
    replayed = ReplayedState()
    entries: list[e.JournalEntry] = [opened_entry(Session("pump", None, personal=False, owner=owner), fresh=True)]
    replayed.apply(e.decode_entries(e.encode_entries(entries)))
    assert [session.owner for session in replayed.sessions.values()] == [owner]
