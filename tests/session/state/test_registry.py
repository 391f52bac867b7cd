"""Sessions are resumed, taken over, ended and expired, and wills wait for them. MQTT 5.0, 3.1.2 and 4.1."""

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from router.commands import Detach, End
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.packets import Will
from rumq.session.flow_control.limits import EXPIRES_NEVER
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.session.state.session_owner import ANYBODY, Owner

ALICE, TENANT = Owner("alice", ""), Owner(None, "site-7/")


class Commands(list[Any]):
    put = list.append


class World:
    def __init__(self) -> None:
        self.commands, self.wills = Commands(), list[str]()
        self.released: list[Sequence[int]] = []
        self.journal = JournalRecorder()
        self.registry = Registry(
            self.commands,
            lambda session, will, current: self.wills.append(will.topic),
            self.journal,
            self.released.append,
        )

    def session(self, *, expiry: int = 0, will_delay: int | None = None) -> Session:
        session, _ = self.registry.open("pump", None, personal=False, clean_start=False)
        session.own_subscriber()
        session.expiry_seconds = expiry
        if will_delay is not None:
            session.will = Will("will", b"", 0, False, {"will_delay_interval": will_delay})
        self.journal.connected(session)
        return session


@pytest.fixture
def world() -> World:
    return World()


def test_without_clean_start_the_session_is_resumed(world: World) -> None:
    """MQTT-3.1.2-5, MQTT-3.2.2-3."""
    session = world.session(expiry=60)
    world.registry.leave(session, with_will=False, now=0.0)
    assert world.registry.open("pump", None, personal=False, clean_start=False) == (session, True)
    assert session.expires_at is None and isinstance(world.commands[0], Detach)


def test_clean_start_ends_it_and_begins_another(world: World) -> None:
    """MQTT-3.1.2-4; 3.1.3.2.2: the delay of its will ends with it."""
    session = world.session(expiry=60, will_delay=30)
    world.registry.leave(session, with_will=True, now=0.0)
    other, present = world.registry.open("pump", None, personal=False, clean_start=True)
    assert other is not session and not present and session.ended
    assert world.wills == ["will"] and isinstance(world.commands[-1], End)


def test_with_expiry_0_the_session_ends_with_the_connection(world: World) -> None:
    """MQTT-3.1.2-23 of an interval of 0."""
    session = world.session(will_delay=30)
    world.registry.leave(session, with_will=True, now=0.0)
    assert session.ended and not len(world.registry) and world.wills == ["will"]


def test_a_session_expires_and_is_forgotten(world: World) -> None:
    session = world.session(expiry=60)
    world.registry.leave(session, with_will=False, now=100.0)
    assert world.registry.deadlines.earliest() == 160.0
    assert world.registry.expire(159.9) == []
    assert world.registry.expire(160.0) == [session]
    assert world.registry.expired == 1 and world.registry.find("pump", ANYBODY) is None


def test_the_largest_interval_never_expires(world: World) -> None:
    """MQTT 5.0, 3.1.2.11.2."""
    session = world.session(expiry=EXPIRES_NEVER)
    world.registry.leave(session, with_will=False, now=0.0)
    assert world.registry.deadlines.earliest() == inf and world.registry.expire(1e12) == []


def test_a_will_waits_for_its_delay_or_the_end_of_the_session(world: World) -> None:
    """MQTT 5.0, 3.1.3.2.2: whichever happens first."""
    for expiry, delay, due in ((60, 30, 30.0), (30, 60, 30.0)):
        session = world.session(expiry=expiry, will_delay=delay)
        world.registry.leave(session, with_will=True, now=0.0)
        world.registry.expire(due - 0.1)
        assert world.wills == []
        world.registry.expire(due)
        assert world.wills == ["will"]
        world.wills.clear()
        world.registry.end(session)


def test_a_client_that_comes_back_in_time_has_no_will_sent(world: World) -> None:
    """MQTT-3.1.3-9."""
    session = world.session(expiry=60, will_delay=30)
    world.registry.leave(session, with_will=True, now=0.0)
    world.session(expiry=60)
    assert world.registry.expire(1000.0) == [] and world.wills == [] and session.will is None


def test_a_disconnect_deletes_the_will(world: World) -> None:
    """MQTT-3.14.4-3."""
    session = world.session(expiry=60, will_delay=0)
    world.registry.leave(session, with_will=False, now=0.0)
    assert world.wills == [] and session.will is None


def test_the_router_gets_back_what_other_members_may_have(world: World) -> None:
    """MQTT-4.8.2-5: QoS 2 that was sent goes to no other member; a retained message is none of the share's."""
    session = world.session()
    session.window = Window(10)
    codes = b"".join(code.to_bytes(4, "little") for code in (3 << 6 | 1, 3 << 6 | 1, 1 << 31 | 3 << 6))
    lsns = b"".join(lsn.to_bytes(8, "little") for lsn in (7, 8, 9))
    session.window.put(0, bytes([1, 2, 1]), lsns, codes)
    world.registry.end(session)
    assert isinstance(world.commands[-1], End) and world.commands[-1].unacknowledged == [(3, 1, 7)]


def test_an_ended_session_is_ended_once(world: World) -> None:
    session = world.session()
    world.registry.end(session)
    world.registry.end(session)
    assert len(world.commands) == 1


@pytest.mark.parametrize("expiry", [0, 60])
def test_the_router_is_told_nothing_of_a_session_that_never_subscribed(world: World, expiry: int) -> None:
    session, _ = world.registry.open("pump", None, personal=False, clean_start=False)
    session.expiry_seconds = expiry
    world.registry.leave(session, with_will=False, now=0.0)
    assert bool(session.ended) is not bool(expiry)
    world.registry.end(session)
    assert not world.commands


def test_a_client_that_comes_back_before_it_subscribes_has_the_encoding_of_its_last_connection(world: World) -> None:
    session, _ = world.registry.open("pump", "old", personal=False, clean_start=False)
    assert world.registry.open("pump", "new", personal=True, clean_start=False) == (session, True)
    subscriber = session.own_subscriber()
    assert (subscriber.shape, subscriber.personal, subscriber.shape_changed) == ("new", True, False)
    assert world.registry.open("pump", "newest", personal=False, clean_start=False) == (session, True)
    assert (subscriber.shape, subscriber.personal, subscriber.shape_changed) == ("newest", False, True)


def test_a_session_counts_for_its_holder_until_it_ends(world: World) -> None:
    session = world.session(expiry=60)
    world.registry.persist(session, "user anna")
    world.registry.persist(session, "user ben")
    assert world.registry.persistent.count == 1
    world.registry.end(session)
    assert world.registry.persistent.count == 0


# Sessions of a journal that is older than owners


def unowned(registry: Registry, *filters: str) -> Session:
    """A session "pump" as an older rumq left it, with these filters."""
    session = Session("pump", None, personal=False, owner=None)
    session.own_subscriber().main_subscriptions = {each: Subscription(each) for each in filters}
    registry.restore(session, expires_in=100.0, will_in=None, now=0.0)
    return session


@pytest.fixture
def registry() -> Registry:
    return World().registry


def test_the_first_who_comes_with_its_client_id_has_a_session_that_nobody_owns(registry: Registry) -> None:
    session = unowned(registry, "a/#")
    assert registry.open("pump", None, personal=False, clean_start=False, owner=ALICE) == (session, True)
    assert (session.owner, session.subscriber.key) == (ALICE, session.key)
    other, present = registry.open("pump", None, personal=False, clean_start=False, owner=Owner("bob", ""))
    assert other is not session and not present
    assert registry.find("pump", ALICE) is session


def test_a_tenant_has_none_that_reaches_out_of_its_mount_point(registry: Registry) -> None:
    session = unowned(registry, "site-7/a/#", "site-8/a/#")
    assert registry.find("pump", TENANT) is None
    assert registry.find("pump", ANYBODY) is session


def test_a_tenant_has_again_what_was_under_its_mount_point(registry: Registry) -> None:
    session = unowned(registry, "site-7/a/#")
    assert registry.find("pump", TENANT) is session


def test_every_filter_is_looked_at() -> None:
    subscriber = Subscriber("pump", None)
    subscriber.main_subscriptions = {"a": Subscription("a")}
    assert subscriber.plain_filters() == ["a"]


def test_the_publisher_numbers_of_a_session_are_released_when_it_ends_and_not_before() -> None:
    world = World()
    short = world.session()
    lasting, _ = world.registry.open("other", None, personal=False, clean_start=False)
    assert short.publishers is None
    short.own_publishers(3)[1] = 7
    world.registry.end(short)
    world.registry.end(short)
    assert world.released == [[0, 7, 0]] and short.publishers is None
    lasting.expiry_seconds = 10
    lasting.own_publishers(3)[2] = 9
    world.registry.leave(lasting, with_will=False, now=0.0)
    assert len(world.released) == 1, "its QoS 2 messages are known by the number"
    world.registry.expire(11.0)
    assert world.released[1:] == [[0, 0, 9]]
