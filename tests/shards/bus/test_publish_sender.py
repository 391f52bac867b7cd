"""Records on their way to a partition's owner: in its log once, whenever either side dies."""

import struct
from typing import Any

import pytest

from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.read import opened_segment
from commitlog.row_layout import ROW, ROW_RETAIN
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.net.frames import encode
from rumq.shards.bus.messages import Numbered, PublishedRecords
from rumq.shards.bus.publish_receiver import IncomingPartition
from rumq.shards.bus.publish_sender import PublishSender
from tests.commitlog.records import everything, frame, opened, write
from tests.shards.bus.world import decoded

SOURCE = 77


class Owner:
    """The shard that writes the partition, as far as one other shard meets it."""

    def __init__(self, files: SimulatedFiles, seed: int = 0) -> None:
        self.partition = opened(files, seed=seed).partitions[0]
        self.incoming = IncomingPartition(self.partition, SOURCE, self._number)
        self.answers: list[Any] = []

    def _number(self, name: bytes) -> int:
        known = self.partition.topic_ids.get(name)
        return self.partition.add_topic(name) if known is None else int(known)

    def hear(self, message: PublishedRecords, *raw: Any) -> None:
        """What `say` was given, over the wire and back."""
        wire = bytearray().join(bytes(part) for part in encode(message, raw))
        again, rest = decoded(wire)
        self.incoming.append(again, rest, 1_000, self.answers.append)
        self.incoming.step_done()

    def in_log(self) -> int:
        """How far the other shard's sequence is in the log, as a successor finds it."""
        found = 0
        for segment in self.partition.segments.files:
            with opened_segment.opened(self.partition.files, segment, self.partition.segments.cache) as (_, _, places):
                pass
            for place in places:
                for chunk in self.partition.cold_read(place.base_lsn, 1).run():
                    for source, sequence in struct.iter_unpack("<QQ", chunk.sources):
                        assert source == SOURCE
                        found = max(found, sequence)
        return found


def publish(
    outgoing: PublishSender,
    topic: bytes,
    client_id: str,
    payloads: list[bytes],
    tags: bytes = b"",
    flags: int = 0,
    retained: tuple[bytes, ...] = (),
) -> None:
    """flags: of the chunk, 0 where all is of QoS 0 and nothing retained; retained: which payloads are"""
    known = outgoing.topic_ids.get(topic)
    number = outgoing.add_topic(topic) if known is None else known
    publisher = outgoing.add_publisher(client_id)
    rows, frames = bytearray(), b""
    for payload in payloads:
        packet = frame(topic, payload)
        flag = ROW_RETAIN if payload in retained else 0
        rows += ROW.pack(number, len(frames), 0, 0, len(packet) - len(payload), publisher, flag, 0)
        frames += packet
    outgoing.append(rows, frames, len(payloads), flags, tags)


def stored(owner: Owner) -> list[tuple[bytes, bytes, bytes]]:
    return [(seen.topic, seen.client_id, seen.payload) for seen in everything(owner.partition)[0]]


def test_numbers_of_one_shard_become_those_of_the_other() -> None:
    owner, outgoing = Owner(SimulatedFiles()), PublishSender(0)
    owner.partition.add_topic(b"here before")
    owner.partition.add_publisher("somebody")
    publish(outgoing, b"b", "p", [b"1"])  # before the owner is there
    outgoing.attach(owner.hear, 1)
    publish(outgoing, b"a", "q", [b"2", b"3"])
    publish(outgoing, b"b", "q", [b"4"])
    write(owner.partition)
    assert stored(owner) == [
        (b"b", b"p", b"1"), (b"a", b"q", b"2"), (b"a", b"q", b"3"), (b"b", b"q", b"4"),
    ]  # fmt: skip
    told = {ours: theirs for answer in owner.answers for ours, theirs in answer.publishers}
    assert all(isinstance(answer, Numbered) for answer in owner.answers)
    assert [owner.partition.publisher_names.get(told[n]) for n in (1, 2)] == [b"p", b"q"]


def test_what_is_committed_is_acknowledged_and_let_go() -> None:
    owner, outgoing = Owner(SimulatedFiles()), PublishSender(0)
    outgoing.attach(owner.hear, 1)
    publish(outgoing, b"t", "p", [b"1", b"2"])
    assert owner.incoming.committed_sequence() == 0 and outgoing.pending_bytes
    write(owner.partition)
    assert outgoing.acknowledged(owner.incoming.committed_sequence(), owner.partition.committed_lsn)
    assert (outgoing.committed_lsn, outgoing.pending_bytes) == (outgoing.next_lsn, 0)


@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_a_successor_gets_what_its_predecessor_had_not_written(written: int) -> None:
    files = SimulatedFiles()
    owner, outgoing = Owner(files), PublishSender(0)
    outgoing.attach(owner.hear, 1)
    for n in range(3):
        publish(outgoing, b"t%d" % n, "p", [b"%d" % n], flags=FLAG_QOS)
        if n < written:
            write(owner.partition)
    outgoing.detach()
    publish(outgoing, b"t0", "p", [b"while it was away"], flags=FLAG_QOS)
    successor = Owner(files.after_kill(), seed=9)
    outgoing.attach(successor.hear, max(successor.in_log(), outgoing.committed_lsn))
    write(successor.partition)
    assert [payload for _, _, payload in stored(successor)] == [b"0", b"1", b"2", b"while it was away"]


@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_what_is_to_come_at_most_once_is_not_handed_over_twice(written: int) -> None:
    """QoS 0: the one before may have shown it. What it never had, and what is retained, is handed over."""
    files = SimulatedFiles()
    owner, outgoing = Owner(files), PublishSender(0)
    outgoing.attach(owner.hear, 1)
    for n in range(3):
        publish(outgoing, b"t%d" % n, "p", [b"%d" % n], flags=FLAG_RETAIN if n == 1 else 0, retained=(b"1",))
        if n < written:
            write(owner.partition)
    outgoing.detach()
    publish(outgoing, b"t0", "p", [b"while it was away"])
    successor = Owner(files.after_kill(), seed=9)
    outgoing.attach(successor.hear, max(successor.in_log(), outgoing.committed_lsn))
    write(successor.partition)
    before = [b"0", b"1", b"2"][:written]
    kept = before if b"1" in before else [*before, b"1"]
    assert [payload for _, _, payload in stored(successor)] == [*kept, b"while it was away"]
    assert outgoing.acknowledged(successor.incoming.committed_sequence(), successor.partition.committed_lsn)
    assert (outgoing.committed_lsn, outgoing.pending_bytes) == (outgoing.next_lsn, 0)


def test_what_the_owner_before_has_not_shown_is_handed_over_again_whatever_its_qos() -> None:
    """It has stopped reading before it handed its partitions over."""
    outgoing, owner = PublishSender(0), Owner(SimulatedFiles())
    outgoing.attach(lambda *message: None, 1)  # nobody there takes anything any more
    publish(outgoing, b"t", "p", [b"a", b"b"])
    outgoing.detach()
    outgoing.has_shown_none = True
    outgoing.attach(owner.hear, 1)
    write(owner.partition)
    assert [payload for _, _, payload in stored(owner)] == [b"a", b"b"]
    assert not outgoing.has_shown_none  # of this owner nothing is known yet


@pytest.mark.parametrize("retained", [(), (b"1",), (b"2",), (b"333",), (b"1", b"333"), (b"1", b"2", b"333")])
def test_of_a_batch_with_retained_messages_only_those_are_handed_over_again(
    retained: tuple[bytes, ...],
) -> None:
    """A seed of the simulation: a message of QoS 0 came twice because a retained one was behind it."""
    files = SimulatedFiles()
    owner, outgoing = Owner(files), PublishSender(0)
    outgoing.attach(owner.hear, 1)
    publish(outgoing, b"t", "p", [b"1", b"2", b"333"], flags=FLAG_RETAIN if retained else 0, retained=retained)
    outgoing.detach()
    successor = Owner(files.after_kill(), seed=9)
    outgoing.attach(successor.hear, outgoing.committed_lsn)
    publish(outgoing, b"t", "p", [b"4"])
    write(successor.partition)
    assert [payload for _, _, payload in stored(successor)] == [*retained, b"4"]
    assert outgoing.acknowledged(successor.incoming.committed_sequence(), successor.partition.committed_lsn)
    assert (outgoing.committed_lsn, outgoing.pending_bytes) == (outgoing.next_lsn, 0)


def test_packet_ids_that_are_not_committed_are_known() -> None:
    outgoing = PublishSender(0)
    publish(outgoing, b"t", "p", [b"1", b"2"], struct.pack("<II", 1, 7))
    assert list(outgoing.uncommitted_tags()) == [(1, 7)]
    outgoing.acknowledged(outgoing.next_lsn, 2)
    assert list(outgoing.uncommitted_tags()) == []


def test_the_owner_s_numbers_of_publishers_die_with_it() -> None:
    """Another client may have the number now: No Local would keep its messages from this one."""
    owner, outgoing = Owner(SimulatedFiles()), PublishSender(0)
    outgoing.attach(owner.hear, 1)
    publish(outgoing, b"t", "p", [b"1"])
    outgoing.numbered(owner.answers[0].publishers)
    assert outgoing.theirs[1]
    outgoing.detach()
    assert list(outgoing.theirs) == [0, 0]
    assert outgoing.known_publisher("p") == 1
