"""A row is stored once, wherever an attempt ends. docs/decisions/0016-a-sink-that-is-once.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.errors import Refused
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packets import Connack, Packet, Puback, Publish, Pubrec, Suback
from rumq.mqtt.reasons import Reason
from rumq.sink.exactly_once import ExactlyOnce, Rows, RowWindow
from rumq.sink.progress_marker import DONE, ProgressMarker
from rumq.sink.sink_protocol import WAITS_PUBACK, WAITS_PUBREC, Steps, Wait
from rumq.table.errors import BadProgressMarker, BatchSuperseded, BrokerCannot, Doubt, RowsChanged
from tests.spark.sink.broker_model import ModelBroker, RuleBroken
from tests.spark.sink.once_attempts import STATE, Attempts, Cut, rows

BATCHES = (7, 3, 9)  # rows of each; a window has 3


def packets_of(at_release: bool) -> list[int]:
    """Packets of an attempt at each batch that nothing cuts."""
    attempts = Attempts(ModelBroker(at_release=at_release))
    found = []
    for batch, size in enumerate(BATCHES):
        assert attempts.run(rows(batch, size), batch) == size
        found.append(attempts.taken)
    return found


def all_rows(batches: int = len(BATCHES)) -> list[bytes]:
    return [row for batch, size in enumerate(BATCHES[:batches]) for row in rows(batch, size)]


def nothing(packet: Packet) -> bool:
    return False


def marks_only(packet: Packet) -> bool:
    """A row is of another topic, which may be on another disk."""
    return isinstance(packet, Publish) and packet.retain


def rows_only(packet: Packet) -> bool:
    return not marks_only(packet)


class End(NamedTuple):
    """Where an attempt ends: at which batch, after so many packets. keeps: the broker falls too, and keeps of what it
    has not answered what this says; None: it goes on"""

    batch: int
    after: int
    keeps: Callable[[Packet], bool] | None = None


def stored_once(publisher: type[ExactlyOnce], at_release: bool, ends: Sequence[End]) -> bool:
    """Run all batches, each until an attempt comes through."""
    return stored_once_by(ModelBroker(at_release=at_release), publisher, ends)


def stored_once_by(broker: ModelBroker, publisher: type[ExactlyOnce], ends: Sequence[End]) -> bool:
    # A PUBCOMP at a time: some are still on their way when all else has come.
    attempts = Attempts(broker, publisher=publisher, comps=lambda most: min(most, 1))
    for batch, size in enumerate(BATCHES):
        for end in ends:
            if end.batch == batch:
                with suppress(Cut):
                    attempts.run(rows(batch, size), batch, cut_after=end.after)
                if end.keeps is not None:
                    broker.fall(end.keeps)
        try:
            attempts.run(rows(batch, size), batch)
        except (RuleBroken, MqttFault):
            return False
        if broker.payloads() != all_rows(batch + 1):
            return False
    return not broker.sessions


def every_end(at_release: bool) -> Iterator[list[End]]:
    """Each place of one attempt, and each pair of places of two attempts at the second batch."""
    packets = packets_of(at_release)
    for keeps in (None, nothing, marks_only, rows_only):
        yield from ([End(batch, n, keeps)] for batch in range(len(BATCHES)) for n in range(packets[batch]))
    yield from ([End(1, first), End(1, second)] for first in range(packets[1]) for second in range(packets[1] + 8))


@pytest.mark.parametrize("at_release", [False, True])
def test_wherever_attempts_end_each_row_is_stored_once_and_in_order(at_release: bool) -> None:
    for ends in every_end(at_release):
        assert stored_once(ExactlyOnce, at_release, ends), ends


@pytest.mark.parametrize("supersedes", [False, True], ids=["older marker first", "newest marker only"])
@pytest.mark.parametrize("at_release", [False, True])
def test_a_marker_on_its_way_when_its_connection_was_taken_over_is_found(at_release: bool, supersedes: bool) -> None:
    """Nobody has its PUBACK, so it may come behind the SUBACK of the next attempt, which then gets it live."""
    packets = packets_of(at_release)
    ends = [[End(batch, n)] for batch in range(len(BATCHES)) for n in range(packets[batch])]
    ends += [[End(1, first), End(1, second)] for first in range(packets[1]) for second in range(16)]
    for each in ends:
        broker = ModelBroker(at_release=at_release, slow=True, supersedes=supersedes)
        assert stored_once_by(broker, ExactlyOnce, each), each


def stored_once_at_random(publisher: type[ExactlyOnce], seed: int) -> bool:
    """A few batches; packets and answers are on their way for a while, attempts end anywhere, the broker falls."""
    random = Random(seed)
    broker = ModelBroker(
        receive_maximum=random.randint(2, 8), at_release=random.random() < 0.5, slow=random.random() < 0.5,
        supersedes=random.random() < 0.5,
    )  # fmt: skip
    a_batch, reach, delay = random.randint(1, 12), random.choice((4, 12, 40)), random.choice((0, 0.8))
    attempts = Attempts(
        broker, publisher=publisher, a_batch=a_batch, packets=lambda most: random.randint(0, most),
        comps=lambda most: random.randint(0, min(most, 2)) if random.random() > delay else 0,
    )  # fmt: skip
    expected: list[bytes] = []
    try:
        for batch in range(random.randint(1, 4)):
            given = rows(batch, random.randint(1, 12))
            expected += given
            for _ in range(random.choice((0, 1, 1, 2, 5))):
                with suppress(Cut):
                    attempts.run(given, batch, cut_after=random.randint(0, reach))
                if random.random() < 0.5:
                    broker.fall(random.choice((nothing, marks_only, lambda packet: random.random() < 0.5)))
            attempts.run(given, batch)
    except (RuleBroken, MqttFault):
        return False
    return sorted(broker.payloads()) == sorted(expected) and not broker.sessions


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32))
def test_however_packets_and_ends_fall_each_row_is_stored_once(seed: int) -> None:
    assert stored_once_at_random(ExactlyOnce, seed)


class OneRange(ExactlyOnce):
    def _ids(self, range_: int, first: int, end: int):  # type: ignore[no-untyped-def]
        return super()._ids(0, first, end)


class MarkBeforePubrec(ExactlyOnce):
    def unstored_count(self) -> int:
        return 0


class MarkBeforePubcomp(ExactlyOnce):
    def unstored_count(self) -> int:
        return int((self.ack_states == WAITS_PUBREC).sum())


class ReleaseBeforeMark(ExactlyOnce):
    def _publish_marker(self, state: str, window: RowWindow, *, release: int) -> Steps:
        self._release(release)
        yield from super()._publish_marker(state, window, release=release)


class NothingIsReleasedAgain(ExactlyOnce):
    def _resend_window(self, mark: ProgressMarker) -> Rows:
        return super()._resend_window(replace(mark, release=0))


class FirstRangeAgain(ExactlyOnce):
    def _resend_window(self, mark: ProgressMarker) -> Rows:
        return super()._resend_window(replace(mark, range=0))


class DoneBeforePubcomp(ExactlyOnce):
    def _finish_batch(self, release: int) -> Steps:
        yield from self._publish_marker(DONE, RowWindow(self._digest), release=0)
        self._release(release)
        while self.unacknowledged_count():
            yield Wait.PACKETS


FAULTS = [
    OneRange, MarkBeforePubrec, MarkBeforePubcomp, ReleaseBeforeMark, NothingIsReleasedAgain, FirstRangeAgain,
    DoneBeforePubcomp,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_protocol_with_a_fault_is_found_out(fault: type[ExactlyOnce]) -> None:
    sound = (stored_once(fault, at_release, ends) for at_release in (True, False) for ends in every_end(at_release))
    assert not all(sound) or not all(stored_once_at_random(fault, seed) for seed in range(300))


# --- what cannot be told


def left_at(after: int, broker: ModelBroker, **options: Any) -> Attempts:
    """Batch 0 is done, batch 1 ended after so many packets."""
    attempts = Attempts(broker, **options)
    attempts.run(rows(0, 4), 0)
    with suppress(Cut):
        attempts.run(rows(1, 9), 1, cut_after=after)
    return attempts


def test_a_session_that_is_lost_is_never_taken_for_one_that_is_there() -> None:
    """Also not when the attempt that found it out had made a new one of the same name before it ended."""
    doubts = 0
    for after in range(packets_of(False)[1]):
        for second in range(12):
            broker = ModelBroker()
            attempts = left_at(after, broker)
            broker.lose_sessions()
            doubted = False
            for cut_after in (second, None, None):
                try:
                    attempts.run(rows(1, 9), 1, cut_after=cut_after)
                except Cut:
                    pass
                except Doubt:
                    doubted = True
                else:
                    assert not doubted and broker.payloads() == rows(0, 4) + rows(1, 9)
            doubts += doubted
    assert doubts > 100


@pytest.mark.parametrize("at_release", [False, True])
def test_a_lenient_sink_publishes_a_batch_in_doubt_again(at_release: bool) -> None:
    for after in range(packets_of(at_release)[1]):
        for second in (None, *range(16)):
            broker = ModelBroker(at_release=at_release)
            attempts = left_at(after, broker, repeat_in_doubt=True)
            broker.lose_sessions()
            for cut_after in (second, None):
                with suppress(Cut):
                    attempts.run(rows(1, 9), 1, cut_after=cut_after)
            assert set(broker.payloads()) == {*rows(0, 4), *rows(1, 9)}
            assert not broker.sessions


def test_a_doubt_says_the_way_out() -> None:
    broker = ModelBroker()
    attempts = left_at(20, broker)
    broker.lose_sessions()
    with pytest.raises(
        Doubt, match=r"lost the session .* onceDoubt = repeat, or clear the progress marker .* rumq/spark/q/0"
    ):
        attempts.run(rows(1, 9), 1)


def test_a_mark_that_is_cleared_has_the_batch_published_again() -> None:
    broker = ModelBroker()
    attempts = left_at(20, broker)
    broker.retained.clear()
    attempts.run(rows(1, 9), 1)
    assert set(broker.payloads()) == {*rows(0, 4), *rows(1, 9)}
    assert broker.payloads()[-9:] == rows(1, 9)


@pytest.mark.parametrize("after", [18, 32, 1000])
def test_other_rows_than_before_are_told(after: int) -> None:
    """1000: the batch was done."""
    other = [b"x", *rows(1, 9)[1:]]
    broker = ModelBroker()
    attempts = left_at(after, broker)
    before = broker.payloads()
    for changed in (other, rows(1, 2)):
        with pytest.raises(RowsChanged, match="Set onceDoubt = repeat, or clear the progress marker"):
            attempts.run(changed, 1)
        assert broker.payloads() == before
    attempts.run(rows(1, 9), 1)
    assert broker.payloads() == rows(0, 4) + rows(1, 9)


def test_a_lenient_sink_publishes_other_rows_with_its_next_attempt() -> None:
    other = [b"x", *rows(1, 9)[1:]]
    broker = ModelBroker()
    attempts = left_at(18, broker, repeat_in_doubt=True)
    with pytest.raises(RowsChanged, match="cleared"):
        attempts.run(other, 1)
    attempts.run(other, 1)
    assert broker.payloads()[-9:] == other


def test_an_attempt_that_comes_late_publishes_nothing() -> None:
    broker = ModelBroker()
    attempts = left_at(1000, broker)
    with pytest.raises(BatchSuperseded, match=r"batch 0 .* at batch 1"):
        attempts.run(rows(0, 4), 0)
    assert broker.payloads() == rows(0, 4) + rows(1, 9)


def test_a_batch_that_was_left_and_not_done_again_is_told() -> None:
    attempts = left_at(20, ModelBroker())
    with pytest.raises(Doubt, match="Spark went on to batch 2"):
        attempts.run(rows(2, 4), 2)


def test_a_state_topic_that_somebody_else_uses_is_told() -> None:
    broker = ModelBroker()
    for payload in (b"21.5", b"{}", b'{"v": 1, "state": "open"}', b'{"v": 2}', b"[]"):
        broker.retained[STATE] = Publish(STATE, payload, 1, True, packet_id=1)
        with pytest.raises(BadProgressMarker, match="stateTopic"):
            Attempts(broker).run(rows(0, 4), 0)


@pytest.mark.parametrize(
    ("properties", "says"),
    [({"maximum_qos": 1}, "not support QoS 2"), ({"retain_available": False}, "not support retained"),
     ({"session_expiry_interval": 0}, "not keep sessions"), ({"receive_maximum": 1}, "one message at a time")],
)  # fmt: skip
def test_a_broker_that_cannot_is_told(properties: Any, says: str) -> None:
    with pytest.raises(BrokerCannot, match=says):
        ExactlyOnce(Connack(properties=properties), 0, STATE, "probe")


def test_a_retained_message_behind_a_later_one_is_told() -> None:
    once = ExactlyOnce(Connack(), 0, STATE, "probe")
    once.step()
    once.receive(encode(Suback(65_534, (Reason.GRANTED_QOS_1,)), 5))
    once.step()
    once.receive(encode(Puback(65_535), 5) + encode(Publish(STATE, b"probe", 1, packet_id=1), 5))
    once.step()
    with pytest.raises(BrokerCannot, match="behind one that was published later"):
        once.receive(encode(Publish(STATE, b"{}", 1, True, packet_id=2), 5))


def test_a_marker_that_is_cleared_while_it_is_read_is_none() -> None:
    """Whoever cleared it has no PUBACK yet: the retained marker comes, and that it is cleared comes live."""
    found = ProgressMarker(0, DONE, 4, 4, 0, 0, 0, 0, ("earlier",)).payload()
    once = ExactlyOnce(Connack(session_present=True), 1, STATE, "probe")
    once.step()
    once.receive(encode(Suback(65_534, (Reason.GRANTED_QOS_1,)), 5))
    for packet_id, payload in enumerate((found, b"", b"probe"), 1):
        once.receive(encode(Publish(STATE, payload, 1, payload == found, packet_id=packet_id), 5))
    once.step()
    once.receive(encode(Puback(65_535), 5))
    assert once.step() is Wait.DONE and once.clean_start_wanted


def test_a_window_that_no_longer_fits_is_told() -> None:
    broker = ModelBroker(receive_maximum=8)
    attempts = left_at(12, broker)
    broker.receive_maximum = 4
    with pytest.raises(BrokerCannot, match="receive maximum"):
        attempts.run(rows(1, 9), 1)
    broker.receive_maximum = 8
    attempts.run(rows(1, 9), 1)
    assert broker.payloads() == rows(0, 4) + rows(1, 9)


def test_a_row_that_is_refused_is_told() -> None:
    once = ExactlyOnce(Connack(), 0, STATE, "probe")
    once.ack_states[1] = WAITS_PUBREC
    with pytest.raises(Refused, match="0x87 not yours"):
        once.receive(encode(Pubrec(1, Reason.NOT_AUTHORIZED, {"reason_string": "not yours"}), 5))
    once.ack_states[65_535] = WAITS_PUBACK
    with pytest.raises(Refused, match="to publish to the state topic rumq/spark/q/0: 0x87"):
        once.receive(encode(Puback(65_535, Reason.NOT_AUTHORIZED), 5))


def test_an_id_in_use_is_a_row_that_is_stored_only_where_one_may_be() -> None:
    """As EMQX answers a PUBLISH that it has."""
    once = ExactlyOnce(Connack(), 0, STATE, "probe")
    in_use = encode(Pubrec(1, Reason.PACKET_IDENTIFIER_IN_USE), 5)
    once.ack_states[1] = WAITS_PUBREC
    with pytest.raises(Refused, match="0x91"):
        once.receive(in_use)
    once._resumed = True
    once.receive(in_use)
