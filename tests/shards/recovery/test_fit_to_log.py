"""What the journal says, made to fit a log that has lost its end."""

from commitlog import StreamSpec
from rumq.mqtt.kernels.window import Window
from rumq.session.journal import entries as e
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedShare, ReplayedState
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.recovery.fit_to_log import end_seen, fit_to_log, fit_to_partitions, shown_below

LAYOUT = ("main/g1/p0", "main/g1/p1")


def replayed() -> ReplayedState:
    made = ReplayedState()
    made.layout = LAYOUT
    made.retained_from, made.tags_from = [9, 9], [9, 9]
    return made


def test_a_retained_message_that_was_never_written_gives_way_to_what_the_log_has() -> None:
    found = replayed()
    for topic, partition, lsn in (("a", 0, 4), ("b", 0, 5), ("c", 1, 5)):
        found.retained[topic] = e.RetainedEntry(partition, lsn, 0, topic, bytes(32), b"")
    assert fit_to_log(found, LAYOUT, [5, 9])
    assert list(found.retained) == ["a", "c"]
    assert found.retained_from == [0, 9], "the log of its partition is looked at from the beginning"


def test_what_is_there_is_left_as_it_is() -> None:
    found = replayed()
    found.retained["a"] = e.RetainedEntry(0, 8, 0, "a", bytes(32), b"")
    found.shares["$share/g/#"] = ReplayedShare([9, 9], [(0, 3, 5)], {(1, 8)})
    assert not fit_to_log(found, LAYOUT, [9, 9])
    assert list(found.retained) == ["a"] and found.retained_from == [9, 9]
    assert found.shares["$share/g/#"] == ReplayedShare([9, 9], [(0, 3, 5)], {(1, 8)})


def test_nothing_beyond_the_log_s_end_is_handed_out_again_or_taken_for_handed_out() -> None:
    """Other records will have those lsns."""
    found = replayed()
    found.shares["$share/g/#"] = ReplayedShare([9, 9], [(0, 3, 5), (0, 5, 8), (1, 8, 12)], {(0, 5), (0, 4), (1, 8)})
    assert fit_to_log(found, LAYOUT, [5, 9])
    share = found.shares["$share/g/#"]
    assert share == ReplayedShare([5, 9], [(0, 3, 5), (1, 8, 9)], {(0, 4), (1, 8)})


def test_what_a_missing_owner_s_records_a_client_had_is_open_until_it_is_there() -> None:
    """However many runs began without it: each of them knew less of its log than the client may have had."""
    partition = RemotePartition(StreamSpec("main", ("#",), 2), 0, 0, 1, owner=1)
    layout = LAYOUT[:1]

    def fitted() -> tuple[list[int], bool]:
        found = ReplayedState()
        found.layout, found.seen, found.retained_from, found.tags_from = layout, [9], [9], [9]
        found.sessions[1] = session = ReplayedSession(1, "c", 5, 100)
        session.redelivered_below = [e.OPEN_END]
        assert end_seen(found, 0) == 9
        fit_to_partitions(found, layout, [partition])
        return session.redelivered_below, found.changed

    partition.is_met, partition.next_lsn, partition.found = True, 9, lambda next_lsn, same_below: None
    assert fitted() == ([e.OPEN_END], False) and shown_below([partition], {}) == [e.OPEN_END]
    partition.next_lsn, partition.found = 12, None
    assert fitted() == ([12], True) and shown_below([partition], {}) == [12]


def test_positions_of_a_run_that_lost_its_end_are_lowered_though_the_log_has_grown_past_them() -> None:
    """The records there are others now. Up to the end a client may have been sent them: by a run that met the owner."""
    partition = RemotePartition(StreamSpec("main", ("#",), 2), 0, 0, 1, owner=1)
    partition.is_met, partition.next_lsn, partition.run.same_below = True, 42, 30
    found = ReplayedState()
    found.layout, found.retained_from, found.tags_from = LAYOUT[:1], [35], [35]
    session = found.sessions[1] = ReplayedSession(1, "c", 5, 100)
    session.cursors[0], session.redelivered_below = [35], [50]
    found.shares["$share/g/#"] = ReplayedShare([36], [(0, 28, 34)], {(0, 29), (0, 31)})
    fit_to_partitions(found, LAYOUT[:1], [partition])
    assert (session.cursors[0], session.redelivered_below, found.tags_from) == ([30], [42], [30]) and found.changed
    assert found.shares["$share/g/#"] == ReplayedShare([30], [(0, 28, 30)], {(0, 29)})


def test_a_partition_whose_owner_is_missing_ends_behind_every_position() -> None:
    found = replayed()
    found.seen = [9, 9]
    assert [end_seen(found, index) for index in (0, 1)] == [9, 9]
    session = found.sessions[1] = ReplayedSession(1, "c", 5, 100)
    session.cursors[0] = [12, 3]
    assert end_seen(found, 0) == 12
    session.redelivered_below = [14, 3]
    assert end_seen(found, 0) == 14
    session.window = Window(4)
    session.window.put(0, b"\1", (20).to_bytes(8, "little"), (0).to_bytes(4, "little"))
    assert end_seen(found, 0) == 21
    found.shares["$share/g/#"] = ReplayedShare([22, 9], [(0, 22, 24), (1, 3, 50)], {(0, 30)})
    assert [end_seen(found, index) for index in (0, 1)] == [31, 50]
    found.retained["a"] = e.RetainedEntry(0, 40, 0, "a", bytes(32), b"")
    assert end_seen(found, 0) == 41
