"""A shard after a crash is what its journal says: checkpoints, shares, snapshots. docs/reference/session-journal.md."""

from itertools import starmap

from hypothesis import given
from hypothesis import strategies as st

from rumq.session.journal import entries as e
from rumq.session.journal.replayed_state import ReplayedShare, ReplayedState

LAYOUT = ("main/g1/p0", "main/g1/p1")
SHARE = "$share/g/a"


def opened(number: int, *, fresh: bool = False) -> e.SessionOpened:
    return e.SessionOpened(number, f"c{number}", 5, 60, fresh, "", None)


def subscribed(number: int, kind: str = "main", reader: int = 1, asked: str = "a") -> e.Subscribed:
    return e.Subscribed(number, asked, "a", 1, False, False, 0, kind, reader, [0, 0])


def checkpoint(
    behind: dict[int, dict[int, list[int]]] | None = None, shares: dict[str, e.SharedCheckpoint] | None = None,
    runs: tuple[tuple[int, int], ...] = (),
) -> e.Checkpoint:  # fmt: skip
    return e.Checkpoint(1, [20, 20], [10, 11], [8, 9], [5, 5], behind or {}, shares or {}, list(runs))


def state_of(*entries: e.JournalEntry) -> ReplayedState:
    state = ReplayedState()
    state.apply([e.Layout(LAYOUT), *entries])
    return state


def test_a_checkpoint_has_live_readers_at_the_watermarks_and_others_at_their_cursors() -> None:
    state = state_of(
        opened(1), subscribed(1), opened(2), subscribed(2), subscribed(2, "replay", 2, "$log/a"),
        checkpoint({2: {1: [3, 4]}}),
    )  # fmt: skip
    assert state.sessions[1].cursors == {1: [10, 11]}
    assert state.sessions[2].cursors == {1: [3, 4], 2: [8, 9]}, "a replay is live at the committed lsn"
    assert (state.tags_from, state.retained_from) == ([20, 20], [5, 5])


def test_a_checkpoint_leaves_sessions_without_a_client_where_they_were() -> None:
    state = state_of(opened(1), subscribed(1), e.Left(1, 1, 60, {1: [2, 3]}), checkpoint())
    assert state.sessions[1].cursors == {1: [2, 3]}


def test_entries_about_an_unknown_session_are_skipped() -> None:
    assert not state_of(e.SessionEnded(9), e.WillEntry(9, 0, b"x"), subscribed(9), e.OpenPacketIds(9, b"")).sessions


def test_fresh_discards_what_was_known_of_a_number() -> None:
    assert not state_of(opened(1), subscribed(1), opened(1, fresh=True)).sessions[1].subscriptions
    assert state_of(opened(1), subscribed(1), opened(1)).sessions[1].subscriptions


def test_numbers_are_never_assigned_twice() -> None:
    assert state_of(opened(5), opened(3), e.SessionEnded(5)).last_number == 5
    assert state_of(e.Layout(("p",), last_number=5), opened(3)).last_number == 5, "what was before a snapshot has gone"


def test_the_messages_of_a_member_that_ended_go_to_another_one_but_not_those_of_qos_2() -> None:
    """MQTT-4.8.2-5 and -6."""
    sent = e.Sent(1, 1 << 6 | 1, 0, bytes([1, 2]), (7).to_bytes(8, "little") + (8).to_bytes(8, "little"))
    state = state_of(opened(1), subscribed(1, "share", 1, SHARE), sent)
    assert state.shares[SHARE].assigned == {(1, 7), (1, 8)}
    state.apply([e.SessionEnded(1)])
    assert state.shares[SHARE].returned == [(1, 7, 8)]


def test_a_checkpoint_has_the_positions_of_shares() -> None:
    shares = {SHARE: e.SharedCheckpoint([4, 5], [(0, 1, 2)])}
    assert state_of(e.Shared(SHARE, [0, 0]), checkpoint(shares=shares)).shares == {
        SHARE: ReplayedShare([4, 5], [(0, 1, 2)])
    }


def retained(topic: str, partition: int = 0) -> e.RetainedEntry:
    return e.RetainedEntry(partition, 3, 0, topic, b"row", b"frame")


ORDERS = st.builds(
    e.StandingOrder,
    st.sampled_from(["ban", "drain", "trace"]), st.sampled_from(["client", "user"]), st.sampled_from("abc"),
    st.sampled_from([0, 7, e.FOREVER_US]), st.just(60.0),
)  # fmt: skip


@given(before=st.lists(ORDERS, max_size=8), behind=st.lists(ORDERS, max_size=8), cut=st.integers(0, 8))
def test_orders_are_those_given_last_however_much_of_the_journal_before_a_snapshot_is_left(
    before: list[e.StandingOrder], behind: list[e.StandingOrder], cut: int
) -> None:
    """The journal is removed in whole segments: of what is before the snapshot any end may be there."""

    def in_force(orders: list[e.StandingOrder]) -> dict[tuple[str, str, str], e.StandingOrder]:
        last = {(each.what, each.kind, each.name): each for each in orders}
        return {key: each for key, each in last.items() if each.until_us}

    snapshot = e.Layout(LAYOUT, tuple(in_force(before).values()))
    entries: list[e.JournalEntry] = [
        *(e.Layout(LAYOUT, (each,)) for each in before[cut:]), e.SnapshotBegun(), snapshot,
        *(e.Layout(LAYOUT, (each,)) for each in behind),
    ]  # fmt: skip
    state = ReplayedState()
    state.apply(e.decode_entries(e.encode_entries(entries)))
    assert state.orders == in_force([*before, *behind])
    assert state.layout == LAYOUT


KEPT = st.builds(e.KeptValue, st.sampled_from([b"a", b"b"]), st.sampled_from([b"", b"1", b"2"]))


@given(before=st.lists(KEPT, max_size=8), behind=st.lists(KEPT, max_size=8), cut=st.integers(0, 8))
def test_kept_values_are_those_written_last_however_much_before_a_snapshot_is_left(
    before: list[e.KeptValue], behind: list[e.KeptValue], cut: int
) -> None:
    def kept(values: list[e.KeptValue]) -> dict[bytes, bytes]:
        return {name: value for name, value in {each.name: each.value for each in values}.items() if value}

    snapshot = e.Layout(LAYOUT, kept=tuple(starmap(e.KeptValue, kept(before).items())))
    entries: list[e.JournalEntry] = [
        *(e.Layout(LAYOUT, kept=(each,)) for each in before[cut:]), e.SnapshotBegun(), snapshot,
        *(e.Layout(LAYOUT, kept=(each,)) for each in behind),
    ]  # fmt: skip
    state = ReplayedState()
    state.apply(e.decode_entries(e.encode_entries(entries)))
    assert state.kept == kept([*before, *behind])


def test_retained_messages_are_those_of_the_last_whole_snapshot() -> None:
    whole = [e.SnapshotBegun(), retained("a"), e.SnapshotEnded(1, [6, 6])]
    state = state_of(*whole, e.SnapshotBegun(), retained("b"))
    assert list(state.retained) == ["a"] and state.retained_from == [6, 6]


def test_other_partitions_keep_their_positions_by_name() -> None:
    sent = e.Sent(1, 1 << 6 | 1, 0, bytes([1]), (7).to_bytes(8, "little"))
    state = state_of(
        opened(1), subscribed(1), sent, checkpoint({1: {1: [3, 4]}}), e.SnapshotBegun(), retained("a", 0),
        retained("b", 1), e.SnapshotEnded(1, [6, 7]), e.Shared(SHARE, [1, 2], [(0, 1, 2), (1, 3, 4)]),
    )  # fmt: skip
    state.remap(("main/g1/p1", "new/g1/p0"), [50, 60])
    session = state.sessions[1]
    assert session.cursors == {1: [4, 60]}
    assert session.window is not None
    assert list(session.window.waiting()) == [(1, 1, 1 << 6, 7)]
    assert state.shares[SHARE] == ReplayedShare([2, 60], [(0, 3, 4)])
    assert list(state.retained) == ["b"] and state.retained["b"].partition == 0
    assert state.retained_from == [7, 60]


def test_the_runs_of_owners_are_those_of_the_last_checkpoint_by_name() -> None:
    state = state_of(checkpoint({}, runs=((77, 1), (88, 2))))
    assert state.runs == [(77, 1), (88, 2)]
    state.remap(("main/g1/p1", "new/g1/p0"), [50, 60])
    assert state.runs == [(88, 2), (0, 0)]
    state.apply([checkpoint({})])
    assert state.runs == [], "written by a version that does not know them"


def test_messages_in_flight_of_a_partition_that_is_gone_are_ended() -> None:
    sent = e.Sent(1, 1 << 6, 0, bytes([1]), (7).to_bytes(8, "little"))
    state = state_of(opened(1), subscribed(1), sent)
    state.remap(("main/g1/p1",), [0])
    session = state.sessions[1]
    assert session.window is not None and session.window.in_flight == 0
