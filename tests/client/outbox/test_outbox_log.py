"""The files of an outbox on a simulated disk: wherever power goes or the process dies, each message is stored once."""

import errno
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog import Gap
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.client import OutboxError, OutboxFailed, OutboxFull, Outgoing
from rumq.client.outbox.forwarding import Forwarding, packet_id_of
from rumq.client.outbox.outbox_log import OutboxLog, OutboxProgress, parse_progress
from rumq.mqtt.packets import Packet, Pubrel
from rumq.mqtt.properties import Properties
from tests.client.outbox.test_forwarding import Broker
from tests.commitlog.records import NOW


class PowerLost(Exception):
    pass


def power_for(calls: int) -> Callable[[], None]:
    """Called before each call of the disk: so many are made, and then the power is gone."""
    left = calls

    def before_call() -> None:
        nonlocal left
        if not left:
            raise PowerLost
        left -= 1

    return before_call


def opened(files: SimulatedFiles, bytes_max: int = 1 << 30, *, syncs: bool = True) -> OutboxLog:
    return OutboxLog(files, "o", bytes_max, syncs=syncs, now_us=lambda: NOW)


def messages(log: OutboxLog, place: int = 0) -> list[bytes]:
    found: list[bytes] = []
    while pieces := log.read(place):
        for piece in pieces:
            assert not isinstance(piece, Gap)
            found.append(piece.frame)
        place += len(pieces)
    return found


class Machine:
    """A process with an outbox and a broker that keeps its session; numbers are published in batches.

    kept: what `publish` has returned for; payloads: by place, of this life of the files"""

    def __init__(self, *, syncs: bool) -> None:
        self.files, self.syncs = SimulatedFiles(), syncs
        self.broker, self.stored = Broker(), list[bytes]()
        self.kept: list[bytes] = []
        self.next_number = 0
        self.start()

    def start(self) -> None:
        self.log = opened(self.files, 1 << 20, syncs=self.syncs)
        progress = self.log.progress
        self.state = Forwarding(progress.stored, progress.release, self.log.next_place)
        self.state.connected(session_present=self.broker.is_present, window=5, qos=2)
        self.broker.is_present = True
        self.answer(self.state.old_packets())

    def answer(self, packets: list[Packet]) -> None:
        for packet in packets:
            assert isinstance(packet, Pubrel)
            self.answer(self.state.receive(self.broker.release(packet.packet_id)))

    def publish(self, count: int) -> None:
        batch = [Outgoing("a", b"<%d>" % (self.next_number + number)) for number in range(count)]
        self.next_number += count
        self.log.append(batch)
        self.log.write()
        self.kept += [message.payload for message in batch]

    def forward(self, count: int) -> None:
        for _ in range(count):
            if not self.state.room() or not (found := self.log.read(self.state.sent)):
                return
            assert not isinstance(found[0], Gap)
            place, payload = found[0].place, found[0].frame[found[0].frame.index(b"<") :]
            before = len(self.broker.log)
            answer = self.broker.publish(place, packet_id_of(place))
            self.stored += [payload] * (len(self.broker.log) - before)
            self.state.note_sent()
            self.state.receive(answer)

    def note(self) -> None:
        if self.state.received > self.state.stored:
            self.log.mark(OutboxProgress("me", self.state.received, self.state.release))
            self.log.write()
            self.answer(self.state.noted(self.log.progress.stored))
            self.log.trim()

    def end(self, how: str, choices: list[int]) -> None:
        """The process dies, or the power goes; it starts again."""
        if how == "kill":
            self.files = self.files.after_kill()
        else:
            left = iter(choices * 1000)
            self.files = self.files.after_power_loss(lambda n: next(left, 0) % n if n else 0)
        self.start()


@given(
    actions=st.lists(st.tuples(st.sampled_from(["publish", "forward", "note"]), st.integers(1, 6)), max_size=25),
    calls=st.integers(0, 60),
    how=st.sampled_from(["kill", "power"]),
    choices=st.lists(st.integers(0, 11), min_size=1, max_size=20),
)
@settings(max_examples=150, deadline=None)
def test_each_message_is_stored_once_wherever_it_ends(
    actions: list[tuple[str, int]], calls: int, how: str, choices: list[int]
) -> None:
    machine = Machine(syncs=True)
    machine.files.before_call = power_for(calls)
    try:
        for action, count in actions:
            if action == "note":
                machine.note()
            else:
                getattr(machine, action)(count)
    except (PowerLost, OutboxFailed):
        pass
    machine.end(how, choices)
    machine.publish(3)
    for _ in range(100):
        machine.forward(10)
        machine.note()
    numbers = [int(payload[1:-1]) for payload in machine.stored]
    assert set(machine.kept) <= set(machine.stored), "what was kept is there"
    assert numbers == sorted(set(numbers)), "each once, in order"


def test_a_process_that_dies_loses_nothing_though_nothing_is_synced() -> None:
    machine = Machine(syncs=False)
    machine.publish(5)
    machine.end("kill", [0])
    assert len(messages(machine.log)) == 5


def test_a_full_disk_is_told_and_nothing_of_the_batch_is_kept() -> None:
    files = SimulatedFiles()
    log = opened(files)
    log.append([Outgoing("a", b"1")])
    log.write()
    files.room_bytes = 0
    log.append([Outgoing("a", b"2" * 5000)])
    with pytest.raises(OutboxFailed, match="not on disk before is not kept"):
        log.write()
    files.room_bytes = None
    assert log.append([Outgoing("a", b"3")]) == 2
    log.write()
    assert [frame[-1:] for frame in messages(log)] == [b"1", b"3"]


def test_a_disk_that_fails_is_told_until_it_works_again() -> None:
    files = SimulatedFiles()
    log = opened(files)
    files.broken, files.broken_under = errno.EIO, "o/outbox"
    log.append([Outgoing("a", b"1")])
    with pytest.raises(OutboxFailed, match="Input/output error"):
        log.write()
    with pytest.raises(OutboxFailed, match="Input/output error"):
        log.append([Outgoing("a", b"1")])
    files.broken = None
    log.append([Outgoing("a", b"2")])
    log.write()
    assert messages(log)[-1].endswith(b"2")


def test_its_bytes_are_bounded_and_segments_that_are_confirmed_make_room() -> None:
    log = opened(SimulatedFiles(), 1 << 19)

    def fill() -> None:
        while True:
            log.append([Outgoing("a", b"x" * 1000)] * 10)
            log.write()

    with pytest.raises(OutboxFull):
        fill()
    full = log.bytes
    assert full <= 1 << 19
    log.mark(OutboxProgress("me", log.next_place, log.next_place))
    log.write()
    assert log.can_trim
    log.trim()
    assert log.bytes < full / 2 and log.first_place > 0
    log.append([Outgoing("a", b"y")])
    log.write()


def test_progress_does_not_grow_for_ever() -> None:
    log = opened(SimulatedFiles(), syncs=False)
    for number in range(5000):
        log.mark(OutboxProgress("me", number, number))
        log.write()
    log.trim()
    assert log.bytes < 2 << 18
    log.reopen()
    assert log.progress == OutboxProgress("me", 4999, 4999)


def test_a_message_is_kept_as_it_was_published() -> None:
    log = opened(SimulatedFiles())
    said = Properties(message_expiry_interval=5, user_properties=[("a", "b")])
    log.append([Outgoing("a/ü", b"", retain=True, properties=said), Outgoing("b", b"x")])
    log.write()
    first, second = log.read(0)
    assert not isinstance(first, Gap) and not isinstance(second, Gap)
    assert (first.place, first.is_retained, first.expires, first.time_us) == (0, True, True, NOW)
    assert (second.place, second.is_retained, second.expires) == (1, False, False)


@pytest.mark.parametrize("message", [Outgoing("a/#", b""), Outgoing("", b""), Outgoing("a\0", b"")])
def test_what_mqtt_cannot_say_is_refused_at_once(message: Outgoing) -> None:
    log = opened(SimulatedFiles())
    with pytest.raises(ValueError):
        log.append([Outgoing("a", b""), message])
    assert log.next_place == 0


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b'{"v": 2}', b'{"v": 1, "more": 1}', b"\xff"])
def test_progress_of_another_version_is_left_alone(payload: bytes) -> None:
    with pytest.raises(OutboxError, match="of another version"):
        parse_progress("o", payload)
