"""Entries are the journal's on-disk format: tags stay, fields are added at the end. docs/session-journal.md."""

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
        e.Checkpoint(
            5, [1], [2], [3], [4], {7: {1: [0]}}, {"$share/g/a": e.SharedCheckpoint([1], [(0, 1, 2)])}
        ),
        e.ReplayStarted(7, 2, [9]),
    ]
    assert msgspec.msgpack.decode(e.encode_entries(entries)) == [
        ["left", 7, 5, 60, {1: [8]}, [], 0],
        ["tide", 5, [1], [2], [3], [4], {7: {1: [0]}}, {"$share/g/a": [[1], [[0, 1, 2]]]}],
        ["placed", 7, 2, [9]],
    ]
    assert e.decode_entries(e.encode_entries(entries)) == entries


def test_an_author_is_an_array_in_its_will() -> None:
    will = e.Will(7, 0, b"x", Author("anna", ["ops"], [], "inside"))
    assert msgspec.msgpack.decode(e.encode_entries([will])) == [
        ["will", 7, 0, b"x", ["anna", ["ops"], [], "inside"]]
    ]


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
    assert first == e.Opened(7, "pump", 5, 100, False)
    assert isinstance(will, e.Will) and will.author is None
    replayed = ReplayedState()
    replayed.apply([first])
    assert replayed.sessions[7].owner is None


@pytest.mark.parametrize(
    "owner", [None, ANYBODY, Owner("alice", ""), Owner(None, "site-7/"), Owner("", ""), Owner("?", "a/")]
)
def test_a_journal_says_whose_a_session_is(owner: Owner | None) -> None:
    replayed = ReplayedState()
    entries: list[e.JournalEntry] = [
        opened_entry(Session("pump", None, personal=False, owner=owner), fresh=True)
    ]
    replayed.apply(e.decode_entries(e.encode_entries(entries)))
    assert [session.owner for session in replayed.sessions.values()] == [owner]
