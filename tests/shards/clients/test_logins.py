"""Clients on their way in: their questions, the room of their listener, and the shard that they belong to."""

from types import SimpleNamespace
from typing import Any

import pytest

from rumq.auth.identity import Identity, Work
from rumq.loop.fault_guard import ShardEvents
from rumq.net.client_placement import ClientPlacement, home_of
from rumq.net.pending_logins import PendingLogins
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.clients.access_gate import AccessGate
from rumq.shards.clients.logins import Logins
from tests.shards.bus.world import Hand

WORK = Work("hash", lambda: None)


class Pool:
    """An `AuthPool`. asked: (address, user, done, is_here)"""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any, Any]] = []
        self.refused: list[tuple[str, float, Any, str]] = []
        self.right: list[tuple[str, str]] = []
        self.has_room = True

    def submit(self, address: str, work: Work, done: Any, *, user: str, is_here: Any) -> bool:
        self.asked.append((address, user, done, is_here))
        return self.has_room

    def delay_refusal(self, address: str, now: float, tell: Any, *, user: str) -> None:
        self.refused.append((address, now, tell, user))

    def was_right(self, address: str, user: str) -> None:
        self.right.append((address, user))


class Transport:
    def __init__(self, name: str) -> None:
        self.peer = f"10.0.0.1:{name}"
        self.link = SimpleNamespace(is_bus=False, client_id=name, end=self._end)
        self.is_ended = False
        self.handed: list[Any] = []

    def _end(self, with_will: bool = False) -> None:
        self.is_ended = True

    def handover_state(self) -> bytes:
        return b"state "

    def hand_over(self) -> str:
        return "socket"


def client(name: str = "c", method: str = "password", listener: int = 0) -> Any:
    return SimpleNamespace(
        address="10.0.0.1", claimed_name=name, closed=False, client_id=name, transport=Transport(name),
        identity=Identity(name, method=method), policy=SimpleNamespace(index=listener, is_removed=False),
    )  # fmt: skip


class World:
    """One of two shards. given: connections that were handed to the other"""

    def __init__(self, index: int = 0, count: int = 2) -> None:
        self.hand, self.pool = Hand(), Pool()
        self.turned_away: list[tuple[Any, str]] = []
        pending = PendingLogins(lambda connection, why: self.turned_away.append((connection, why)), lambda: 100)
        self.pump = SimpleNamespace(connections={}, pending_logins=pending)
        self.given: list[tuple[Any, ...]] = []
        doors: Any = SimpleNamespace(give=lambda *args: self.given.append(args))
        pool: Any = self.pool
        placement = ClientPlacement(doors, index, count)
        self.totals = ShardTotals()
        events, gate = ShardEvents(self.hand.tell), AccessGate(self.hand)
        self.logins = Logins(pool, self.pump, placement, self.hand, events, gate, self.totals)

    def connected(self, count: int) -> None:
        self.pump.connections.update((at, object()) for at in range(count))


def elsewhere(index: int, count: int = 2) -> str:
    """A client id whose home is another shard."""
    return next(name for name in map(str, range(100)) if home_of(name, count) != index)


# Authentication


def test_a_question_is_asked_for_the_address_and_the_name_that_the_client_says() -> None:
    world, ann = World(), client("ann")
    answers: list[object] = []
    assert world.logins.check(ann, WORK, lambda result, fault: answers.append((result, fault)))
    ((address, user, done, is_here),) = world.pool.asked
    assert (address, user) == ("10.0.0.1", "ann") and is_here()
    done("yes", None)
    assert answers == [("yes", None)]
    ann.closed = True
    assert not is_here(), "nobody waits for it any more"


def test_too_many_who_wait_are_told_so() -> None:
    world = World()
    world.pool.has_room = False
    assert not world.logins.check(client(), WORK, lambda result, fault: None)


def test_a_fault_of_ours_in_an_answer_ends_the_one_connection() -> None:
    world, ann = World(), client("ann")

    def fails(result: object, fault: BaseException | None) -> None:
        raise ZeroDivisionError

    world.logins.check(ann, WORK, fails)
    world.pool.asked[0][2](None, None)
    assert ann.transport.is_ended
    assert [name for name, _ in world.hand.events] == ["client.crashed"]


def test_a_refusal_waits_for_as_long_as_the_address_has_earned() -> None:
    world = World()
    world.logins.delay_refusal(client("eve"), lambda: None)
    ((address, now, _, user),) = world.pool.refused
    assert (address, now, user) == ("10.0.0.1", world.hand.monotonic, "eve")


@pytest.mark.parametrize(
    ("method", "is_remembered"),
    [("password", True), ("certificate", True), ("anonymous", False), ("unverified", False)],
)
def test_who_proved_to_be_somebody_comes_before_others_the_next_time(method: str, is_remembered: bool) -> None:
    world, ann = World(), client("ann", method)
    world.logins.enter(ann.transport)
    world.logins.logged_in(ann)
    assert world.pool.right == ([("10.0.0.1", "ann")] if is_remembered else [])
    assert ann.transport not in world.pump.pending_logins


# Pending logins


def test_a_connection_counts_as_one_that_has_not_logged_in_until_it_has() -> None:
    world, ann = World(), client("ann")
    world.logins.enter(ann.transport)
    assert ann.transport in world.pump.pending_logins and len(world.pump.pending_logins) == 1
    world.logins.logged_in(ann)
    assert len(world.pump.pending_logins) == 0


def test_what_is_kept_of_those_who_have_not_logged_in_is_bounded() -> None:
    world, small, large = World(), client("s"), client("l")
    world.pump.pending_logins.set_limits(0, 0, 1000)
    for each in (small, large):
        world.logins.enter(each.transport)
    assert world.logins.may_buffer(small, 400) and world.logins.may_buffer(large, 600)
    assert not world.logins.may_buffer(small, 401) or world.turned_away
    assert world.pump.pending_logins.bytes <= 1000


def test_who_waits_for_the_broker_is_not_sent_away_for_a_new_one() -> None:
    world = World()
    world.pump.pending_logins.set_limits(2, 0, 0)
    owed, heard = client("owed"), client("heard")
    for each in (owed, heard):
        world.logins.enter(each.transport)
        world.logins.set_waiting(each, False)
    world.logins.set_waiting(owed, True)
    for number in range(2):
        world.logins.enter(client(f"new {number}").transport)
    assert [connection for connection, _ in world.turned_away] == [heard.transport]
    world.logins.set_waiting(owed, False)
    world.logins.enter(client("one more").transport)
    assert world.turned_away[-1][0] is owed.transport, "it has been answered: now the broker waits for it"


# Room


def test_a_listener_has_room_for_so_many_clients_that_have_logged_in() -> None:
    world = World()
    world.logins.connections_max[1] = 3
    world.connected(3)
    assert not world.logins.has_room(client(listener=1))
    assert world.logins.has_room(client(listener=0)), "another listener has no bound"
    world.logins.enter(client("new").transport)
    assert world.logins.has_room(client(listener=1)), "one of the three has not logged in"


def test_that_clients_are_turned_away_is_told_now_and_then() -> None:
    world = World()
    world.logins.connections_max[0] = 0
    for _ in range(20):
        assert not world.logins.has_room(client())
    assert world.hand.events == [
        ("listener.overloaded", {"connections": 0, "turned_away": count}) for count in (1, 2, 4, 8, 16)
    ]


# Placement


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_assigned_client_id_leads_to_this_shard_and_is_new(index: int) -> None:
    world = World(index, 3)
    assigned = [world.logins.assigned_client_id("auto-") for _ in range(20)]
    assert len({*assigned}) == 20
    assert all(name.startswith("auto-") and home_of(name, 3) == index for name in assigned)


def test_a_client_of_another_shard_is_handed_over_with_what_was_read_of_it() -> None:
    world, name = World(), elsewhere(0)
    there = client(name, listener=4)
    assert world.logins.hand_over(there, name, b"CONNECT")
    assert world.given == [(1, "known", "socket", there.transport.peer, b"state CONNECT", 4)]
    assert world.totals.sockets == -1, "it is counted where it goes"


def test_a_client_of_this_shard_stays() -> None:
    world, name = World(1), elsewhere(0)
    assert not world.logins.hand_over(client(name), name, b"CONNECT") and world.given == []
