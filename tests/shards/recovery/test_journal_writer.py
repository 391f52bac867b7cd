"""What is written down of sessions is never ahead of the log that it speaks of."""

from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.write_group import WriteGroup
from rumq.session.journal.entries import Checkpoint, SessionOpened, StandingOrder, WillEntry, decode_entries
from tests.commitlog.records import NOW, everything, write
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.recovery.world import Run

LASTING = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 3600)]}


def test_a_packet_id_is_not_written_down_before_its_message() -> None:
    """A QoS 2 message that was not stored must be taken when its client sends it again after a crash."""
    files = SimulatedFiles()
    shard = Shard(files)
    client = Client(shard, "c", 5, **LASTING)
    client.say(wire.publish("t", b"first", 1, 1))
    # The writer is busy with an earlier group of the partition, while a checkpoint is due.
    busy = WriteGroup(shard.store.own[1].writer, 0, 0, 0)
    shard.store.own[1]._in_flight = busy
    shard.monotonic += 2.0
    packet = wire.publish("t", b"second", 2, 7)
    shard.parts.turn.begin_turn()
    assert client.link.receive(packet, 0, len(packet)) == len(packet)
    shard.parts.turn.end_turn()
    shard.end()

    again = Shard(files.after_kill(), seed=1)
    stored = [seen.payload for seen in everything(again.store.partitions[1])[0]]
    assert stored == [b"first"], "the crash came between the two"
    client = Client(again, "c", 5, **LASTING)
    client.say(wire.publish("t", b"second", 2, 7, dup=True))
    assert [(packet.kind, packet.packet_id) for packet in client.take()] == [(Kind.PUBREC, 7)]
    assert [seen.payload for seen in everything(again.store.partitions[1])[0]] == [b"first", b"second"]
    again.end()


def test_nothing_is_journalled_before_the_sessions_of_the_run_before_are_here() -> None:
    """A snapshot of half of them would be the last word about the others."""
    run = Run(SimulatedFiles())
    run.session("c")
    begin = run.journal.partition.next_lsn
    run.lifecycle.is_restored = False
    run.journal.end_turn()
    assert run.journal.partition.next_lsn == begin
    run.lifecycle.is_restored = True
    run.journal.end_turn()
    assert run.journal.partition.next_lsn > begin and not run.recorder.has_entries()


def test_a_checkpoint_that_is_written_at_once_has_what_was_noted_before_it() -> None:
    """It names other runs of owners than the one before: what is behind it is of those."""
    run = Run(SimulatedFiles())
    run.session("c")
    begin = run.journal.partition.next_lsn
    run.lifecycle.is_restored = False
    run.journal.write_checkpoint()
    assert run.journal.partition.next_lsn == begin, "positions are still those of the journal"
    run.lifecycle.is_restored = True
    run.journal.write_checkpoint()
    run.write()
    entries = [type(each) for record in everything(run.journal.partition)[0] for each in decode_entries(record.payload)]
    assert entries[-3:] == [SessionOpened, WillEntry, Checkpoint]


def test_who_waits_for_the_journal_is_called_in_the_turn_after_it_is_committed() -> None:
    run = Run(SimulatedFiles())
    called: list[str] = []
    for name in "ab":
        lsn = run.journal.write_standing([StandingOrder("ban", "client", name, 1, 1.0)], NOW)
        run.journal.when_committed(lsn, lambda name=name: called.append(name))  # type: ignore[misc]
    run.journal.end_turn()
    assert called == []
    run.write()
    assert called == [], "not on whatever thread has written it"
    run.journal.end_turn()
    assert called == ["a", "b"]
    run.journal.end_turn()
    assert called == ["a", "b"]


def test_the_journal_comes_before_the_groups_that_acknowledgements_wait_for() -> None:
    shard = Shard(SimulatedFiles())
    client = Client(shard, "c", 5, **LASTING)
    internal, shard.parts.writing.commit.is_draining = shard.store.internal, True
    shard.parts.turn.begin_turn()
    shard.parts.clients.journal.recorder.connected(client.link.session)
    shard.parts.turn.end_turn()
    assert internal is not None and internal.pending_bytes
    assert internal.take_group() is None, "the writer has it already"
    shard.end()


@settings(deadline=None, max_examples=40)
@given(
    turns=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9000)), max_size=3),  # who connects
            st.floats(0.0, 2.0),  # seconds later
            st.booleans(),  # whether the operator orders something
        ),
        min_size=1, max_size=10,
    ),
    cut=st.floats(0, 1),
)  # fmt: skip
def test_a_journal_in_small_groups_is_that_of_the_general_way(
    turns: list[tuple[list[tuple[str, int]], float, bool]], cut: float
) -> None:
    """Byte by byte, and whatever a restart finds of its first bytes only."""
    found = []
    for small in (True, False):
        files = SimulatedFiles()
        run = Run(files)
        journal = run.journal.partition
        for connected, seconds, is_ordered in turns:
            for client_id, expiry_seconds in connected:
                run.session(client_id, expiry_seconds)
            run.hand.monotonic += seconds
            if is_ordered:
                run.journal.write_standing([StandingOrder("ban", "client", "x", 1, 1.0)], NOW)
            run.journal.end_turn()
            assert write(journal, small=small)
        path = journal.segments.active.path
        content = files.content(path)
        size = 4096 + round(cut * (len(content) - 4096))
        files.put(path, content[:size])
        again = Run(files.after_kill(), seed=1)
        kept = {key: session.expiry_seconds for key, session in again.registry.sessions.items()}
        found.append((content, again.journal.partition.next_lsn, kept))
    assert found[0] == found[1]
