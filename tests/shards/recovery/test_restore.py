"""A restart: sessions, subscriptions and retained messages are those of the journal and of the log behind it."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.readers.subscription import Subscription
from rumq.session.journal.replayed_state import ReplayedShare
from rumq.shards.recovery.restore import had_by_members
from tests.commitlog.records import NOW
from tests.shards.recovery.world import Run, restorer_of


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


def subscribe(run: Run, client_id: str, topic_filter: str) -> None:
    session = run.session(client_id)
    session.own_filters().add(topic_filter, is_replay=False)
    run.router.step([c.AddSubscription(session.own_subscriber(), Subscription(topic_filter), False)])
    run.recorder.subscribed(session, topic_filter)


def retain(run: Run, topic: bytes, payload: bytes) -> None:
    from tests.commitlog.records import frame

    partition = run.store.own[0]
    number = partition.topic_ids.get(topic)
    number = partition.add_topic(topic) if number is None else number
    packet = frame(topic, payload)
    row = bytearray(32)
    row[0:4] = number.to_bytes(4, "little")
    row[20:24] = (len(packet) - len(payload)).to_bytes(4, "little")
    row[28] = 4 if payload else 4 | 64
    chunk = partition.append(row, packet, 1, 8, NOW)
    run.router.step([c.Appended(0, chunk), c.Committed(0, partition.next_lsn)])


def test_a_session_and_its_subscriptions_are_there_again(files: SimulatedFiles) -> None:
    first = Run(files)
    subscribe(first, "pump", "plant/#")
    first.flush()
    again = Run(files.after_kill(), seed=1)
    session = again.find("pump")
    assert session is not None and session.durable and session.link is None
    assert session.subscriber.filters() == ["plant/#"] and "plant/#" in session.asked
    assert not again.wants_publishers


def test_a_session_that_ends_with_its_connection_is_not_there(files: SimulatedFiles) -> None:
    first = Run(files)
    first.session("short", expiry_seconds=0)
    first.session("pump")
    first.flush()
    again = Run(files.after_kill(), seed=1)
    assert again.find("short") is None and again.find("pump") is not None


def test_retained_messages_are_found_in_the_log_and_so_is_their_end(files: SimulatedFiles) -> None:
    first = Run(files)
    for topic, payload in ((b"a", b"1"), (b"b", b"2"), (b"b", b"")):
        retain(first, topic, payload)
    first.flush()
    again = Run(files.after_kill(), seed=1)
    assert again.router.retained.get("a") is not None and again.router.retained.get("b") is None


def test_a_snapshot_alone_is_enough(files: SimulatedFiles) -> None:
    first = Run(files)
    subscribe(first, "pump", "plant/#")
    retain(first, b"a", b"1")
    first.flush()
    first.journal.write_snapshot(NOW)
    first.write()
    again = Run(files.after_kill(), seed=1)
    assert again.find("pump") is not None and again.router.retained.get("a") is not None
    assert again.journal.keep_lsn(0) == 1, "the log below is not needed for retained messages"


@pytest.mark.parametrize("is_written", [False, True])
def test_a_run_that_wrote_its_epoch_leaves_another_one_to_the_next(files: SimulatedFiles, is_written: bool) -> None:
    first = Run(files)
    subscribe(first, "pump", "plant/#")
    first.flush()
    second = Run(files.after_kill(), seed=1)
    if is_written:
        restorer_of(second).write_epoch()
    third = Run(files.after_kill(), seed=2)
    epochs = [run.store.own[0].starts[-1][0] for run in (first, second, third)]
    assert epochs == [1, 2, 3 if is_written else 2]
    session = third.find("pump")
    assert session is not None and session.subscriber.filters() == ["plant/#"]


def test_a_shard_whose_disk_takes_nothing_begins_all_the_same(files: SimulatedFiles) -> None:
    run = Run(files)
    files.broken = errno.ENOSPC
    restorer_of(run).write_epoch()
    assert run.journal.partition.offline is not None


@given(
    sent=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 30))),
    back=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9))),
)
def test_what_members_had_is_what_they_were_sent_and_did_not_give_back(
    sent: set[tuple[int, int]], back: list[tuple[int, int, int]]
) -> None:
    returned = [(where, first, first + size) for where, first, size in back]
    had = had_by_members(ReplayedShare([0, 0, 0], returned, sent))
    gone = {(where, lsn) for where, first, stop in returned for lsn in range(first, stop)}
    assert {(where, lsn) for where, first, stop in had for lsn in range(first, stop)} == sent - gone
    assert had == sorted(had) and all(first < stop for _, first, stop in had)
