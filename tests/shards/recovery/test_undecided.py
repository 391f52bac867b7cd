"""Which packets wait for a shard that is missing, and which do not. MQTT 5.0, 4.3.3."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.mqtt.reasons import Reason
from rumq.session.journal import entries as e
from rumq.session.journal.recorder import JournalRecorder, tag_of
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.recovery.checkpoint import open_entry, open_packet_ids
from rumq.shards.recovery.undecided import WAITING_SECONDS, Undecided
from tests.shards.bus.world import Hand

MISSING, OTHER_MISSING = 0, 2
NUMBER = 5


class Link:
    """A connection; its wire stopped at a PUBLISH."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.wire: Any = SimpleNamespace(
            undecided=True, passed=0, packet_id=0, partition=0, qos2_open=None, unacknowledged=0
        )
        self.is_paused = False
        self.dismissed: list[Reason] = []

    def pause(self) -> None:
        self.is_paused = True

    def resume(self, call: Callable[[], None] | None = None) -> None:
        self.is_paused = False
        if call is not None:
            call()

    def dismiss(self, reason: Reason, why: str | None = None, reference: str = "") -> None:
        self.dismissed.append(reason)


class World:
    """One session; partition p is that of shard p. released, tagged: since the last `Open`, as known at the start."""

    def __init__(self, released: dict[int, int] | None = None, tagged: tuple[int, ...] = ()) -> None:
        self.hand = Hand()
        self.recorder = JournalRecorder()
        self.session: Any = SimpleNamespace(number=NUMBER, link=None, qos2_open=None)
        self.recorder.sessions[NUMBER] = self.session
        self.link = self.session.link = Link(self.session)
        self.replayed = ReplayedSession(NUMBER, "pump", 5, 100)
        self.replayed.qos2_released, self.replayed.qos2_tagged = dict(released or {}), set(tagged)
        self.undecided = Undecided(self.recorder, self.hand, self.hand)

    def begin(self, *missing: int) -> "World":
        self.undecided.begin({shard: [shard] for shard in missing or (MISSING,)}, {NUMBER: self.replayed})
        return self

    def takes(self, packet_id: int, partition: int, *, is_again: bool = True) -> bool:
        self.link.wire.packet_id, self.link.wire.partition = packet_id, partition
        return self.undecided.takes_publish(self.link, is_again=is_again)

    def has(self, shard: int, *packet_ids: int) -> None:
        self.undecided.answered(shard, [("pump", tag_of(NUMBER) << 16 | each) for each in packet_ids])

    @property
    def open_ids(self) -> list[int]:
        return list(memoryview(open_packet_ids(self.session)).cast("H"))


@pytest.mark.parametrize("is_again", [True, False])
def test_a_message_to_a_missing_shard_waits_and_is_looked_at_again(is_again: bool) -> None:
    world = World().begin()
    assert not world.takes(7, MISSING, is_again=is_again) and world.link.is_paused
    world.has(MISSING, 7)
    assert not world.link.is_paused and world.open_ids == [7]
    assert not world.link.wire.undecided


def test_a_message_to_another_shard_is_new_where_its_id_is_in_no_log_that_is_there() -> None:
    world = World(tagged=(8,)).begin()
    assert world.takes(7, 1) and world.link.wire.passed == 7
    assert not world.link.is_paused


def test_an_id_that_was_released_may_have_been_used_again_in_the_missing_log() -> None:
    """Sent again to a shard that has a message by this id: whether that is this one depends on the missing log."""
    world = World(released={7: 1}, tagged=(7,)).begin()
    assert not world.takes(7, 1) and world.link.is_paused
    world.link.is_paused = False
    assert world.takes(7, 1, is_again=False), "what is not sent again is another message"


def test_an_id_released_as_often_as_it_was_used_is_free() -> None:
    world = World(released={7: 2}, tagged=(7,)).begin()
    world.has(MISSING, 7, 7)
    assert world.open_ids == []


def test_an_id_used_once_more_than_released_is_open() -> None:
    world = World(released={7: 1}, tagged=(7,)).begin()
    world.has(MISSING, 7, 7)
    assert world.open_ids == [7] and world.link.wire.unacknowledged == 1


def test_the_tags_of_another_session_of_the_client_are_not_its() -> None:
    world = World().begin()
    world.undecided.answered(MISSING, [("pump", tag_of(NUMBER + 1) << 16 | 7), ("other", 7)])
    assert world.open_ids == []


def test_the_end_of_an_unknown_exchange_waits_for_all() -> None:
    world = World().begin(MISSING, OTHER_MISSING)
    ended: list[bool] = []
    world.undecided.wait_for_all(world.link, lambda: ended.append(True))
    world.has(MISSING)
    assert world.link.is_paused and not ended
    world.has(OTHER_MISSING, 7)
    assert not world.link.is_paused and ended == [True] and world.open_ids == [7]


def test_a_session_without_a_client_gets_its_ids_too() -> None:
    world = World().begin()
    world.session.link = None
    world.has(MISSING, 7)
    assert world.open_ids == [7] and world.recorder.qos2_changed == {NUMBER: world.session}


def test_who_waits_too_long_is_sent_away_and_the_operator_told_how_many() -> None:
    world = World().begin()
    assert not world.takes(7, MISSING)
    ((seconds, give_up),) = world.hand.waiting
    assert seconds == WAITING_SECONDS
    give_up()
    assert world.link.dismissed == [Reason.SERVER_BUSY]
    world.hand.waiting[-1][1]()
    assert world.hand.events == [("shard.waits_ended", {"shards": [MISSING], "clients": 1})]


def test_a_client_that_went_on_and_waits_again_has_its_time_anew() -> None:
    world = World().begin(MISSING, OTHER_MISSING)
    assert not world.takes(7, MISSING)
    world.has(MISSING)
    assert not world.takes(8, OTHER_MISSING)
    world.hand.waiting[0][1]()
    assert not world.link.dismissed


def test_nothing_waits_once_all_have_answered() -> None:
    world = World().begin()
    assert world.undecided.concerns(world.session)
    world.has(MISSING)
    assert not world.undecided.concerns(world.session) and world.takes(7, MISSING)


def test_what_no_message_accounts_for_is_in_the_journal_until_all_have_answered() -> None:
    """The next run asks the missing shard from where this one had to."""
    world = World(released={7: 2, 9: 1}).begin()
    entry = open_entry(world.recorder, world.session, ())
    assert list(memoryview(entry.released).cast("H")) == [7, 7, 9]
    replayed = ReplayedState()
    replayed.apply([e.SessionOpened(NUMBER, "pump", 5, 100, True), entry])
    session = replayed.sessions[NUMBER]
    assert session.qos2_released == {7: 2, 9: 1} and session.qos2_changed
    world.has(MISSING, 7, 7, 9)
    assert open_entry(world.recorder, world.session, ()).released == b""
    assert NUMBER in world.recorder.qos2_changed
