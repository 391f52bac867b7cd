"""What the journal is told of a session, in the order in which it became true. docs/reference/session-journal.md."""

import pytest

from rumq.mqtt.packets import Will
from rumq.session.journal import entries as e
from rumq.session.journal.recorder import NO_SESSION_TAG, UNKNOWN_TAG, JournalRecorder, tag_of
from rumq.session.state.session import Session


def session(expiry: int = 60, *, will: bool = False) -> Session:
    made = Session("pump", None, personal=False)
    made.expiry_seconds = expiry
    if will:
        made.will = Will("t", b"gone", 0, False, {"will_delay_interval": 5})
    return made


@pytest.fixture
def recorder() -> JournalRecorder:
    return JournalRecorder()


def drained(recorder: JournalRecorder) -> list[e.JournalEntry]:
    return recorder.drain([(5, 4)], 1_000)


def test_a_session_that_outlives_its_connection_is_recorded_with_its_will(recorder: JournalRecorder) -> None:
    made = session(will=True)
    recorder.connected(made)
    opened, will = drained(recorder)
    assert opened == e.SessionOpened(1, "pump", 5, 60, False, "", None)
    assert isinstance(will, e.WillEntry) and (will.delay_seconds, bool(will.frame)) == (5, True)
    assert made.durable and recorder.sessions == {1: made} and not recorder.has_entries()


def test_a_session_that_ends_with_its_connection_is_not(recorder: JournalRecorder) -> None:
    made = session(0)
    recorder.connected(made)
    recorder.subscribed(made, "a")
    recorder.unsubscribed(made, "a")
    recorder.left(made)
    recorder.ended(made)
    assert made.number == 0 and drained(recorder) == []


def test_its_will_is_recorded_all_the_same(recorder: JournalRecorder) -> None:
    """A will is published after a crash, too."""
    made = session(0, will=True)
    recorder.connected(made)
    assert made.number == 1 and not made.durable
    assert [type(entry) for entry in drained(recorder)] == [e.SessionOpened, e.WillEntry]


def test_an_end_takes_back_what_was_not_written(recorder: JournalRecorder) -> None:
    made = session()
    recorder.connected(made)
    recorder.subscribed(made, "a")
    recorder.left(made)
    recorder.ended(made)
    assert [type(entry) for entry in drained(recorder)] == [e.SessionOpened, e.WillEntry, e.SessionEnded]
    assert not recorder.sessions and not recorder.qos2_changed


def test_a_client_that_is_back_has_not_left(recorder: JournalRecorder) -> None:
    made = session()
    recorder.connected(made)
    recorder.left(made)
    recorder.connected(made)
    assert [type(entry) for entry in drained(recorder)] == [e.SessionOpened, e.WillEntry, e.SessionOpened, e.WillEntry]


def test_the_positions_of_a_client_that_has_left_are_those_of_the_drain(recorder: JournalRecorder) -> None:
    made = session()
    recorder.connected(made)
    recorder.left(made)
    assert drained(recorder)[-1] == e.Left(1, 1_000, 60, {}, [])


def test_acknowledgements_are_words_of_packet_type_and_packet_id(recorder: JournalRecorder) -> None:
    made = session()
    recorder.connected(made)
    drained(recorder)
    recorder.acknowledged_one(made, 0x62, 0x1234)
    assert drained(recorder) == [e.Acknowledged(1, bytes.fromhex("34126200"))]


def test_packet_ids_from_before_it_was_durable_are_part_of_the_next_checkpoint(
    recorder: JournalRecorder,
) -> None:
    made = session()
    made.qos2_open = bytearray(8192)
    recorder.connected(made)
    assert recorder.qos2_changed == {1: made}


def test_a_session_tag_is_none_of_the_two_that_mean_something_else() -> None:
    """docs/reference/log-format.md, "Aux": 0 is unknown, 65,535 a session that the journal does not have."""
    assert tag_of(0) == NO_SESSION_TAG
    assert {tag_of(number) for number in range(1, 200_000)}.isdisjoint({UNKNOWN_TAG, NO_SESSION_TAG})
