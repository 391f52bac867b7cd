"""Replay of the journal, and inbound QoS 2 messages that only the log has."""

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.journal import entries as e
from rumq.session.journal.recorder import tag_of
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.recovery.journal_reader import add_tags, replay
from tests.shards.recovery.world import Run


def test_records_of_a_journal_are_replayed_in_order() -> None:
    run = Run(SimulatedFiles())
    run.session("first")
    run.flush()
    run.session("second")
    run.flush()
    assert run.store.internal is not None
    state = replay(run.store, run.store.internal, run.hand.tell)
    assert [session.client_id for session in state.sessions.values()] == ["first", "second"]
    assert not run.hand.events


def test_a_message_that_came_after_the_last_checkpoint_waits_for_its_pubrel() -> None:
    state = ReplayedState()
    state.apply([e.SessionOpened(1, "pump", 5, 100, True)])
    add_tags(state, [("pump", tag_of(1) << 16 | 7), ("pump", tag_of(2) << 16 | 8), ("other", 9)])
    assert state.sessions[1].qos2_open == {7}, "neither another session's nor another client's"
