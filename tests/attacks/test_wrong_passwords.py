"""Somebody tries passwords, from one address or from many, so that nobody with a right one has a turn.

The threads that compute hashes are stood in for by hand: what is asked for runs when the test says so."""

import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rumq.auth.errors import Busy
from rumq.auth.fair_queue import (
    ADDRESS_MAX,
    BACKOFF_MAX,
    BACKOFF_TURN_SECONDS,
    USER_BACKOFF_MAX,
    WAITING_MAX,
    Bounds,
    FairQueue,
)
from rumq.auth.identity import Work
from rumq.shards.clients import auth_pool
from rumq.shards.clients.auth_pool import AuthPool
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer


class Hand:
    """In the place of a worker: runs one job when it is told to."""

    jobs: list[tuple[Callable[[], Any], Callable[[Any, Any], None]]]

    def __init__(self, name: str) -> None:
        self.fd = -1

    def finish(self) -> None: ...

    def submit(self, job: Callable[[], Any], done: Callable[[Any, Any], None], lane: int = 0) -> None:
        if job is not auth_pool.yield_to_others:
            self.jobs.append((job, done))


class Place:
    def __init__(self) -> None:
        self.now = 0.0
        self.ended: list[str] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.checking = AuthPool(
            lambda fd, call: None, lambda seconds, call: self.timers.append((self.now + seconds, call)),
            lambda: self.now,
        )  # fmt: skip

    def ask(self, address: str, user: str, name: str = "", key: bytes = b"", **more: Any) -> bool:
        def done(result: Any, fault: BaseException | None) -> None:
            self.ended.append(f"{name or user} busy" if isinstance(fault, Busy) else name or user)

        return self.checking.submit(address, Work("hash", lambda: None, key), done, user=user, **more)

    def work(self, count: int = 1) -> None:
        """So many hashes are computed; each takes 20 ms."""
        for _ in range(count):
            if Hand.jobs:
                job, done = Hand.jobs.pop(0)
                self.now += 0.02
                done(job(), None)
            else:
                self.now += BACKOFF_TURN_SECONDS
            for timer in [timer for timer in self.timers if timer[0] <= self.now]:
                self.timers.remove(timer)
                timer[1]()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(auth_pool, "Worker", Hand)
    monkeypatch.setitem(auth_pool.THREADS, "hash", 1)
    Hand.jobs = []
    return Place()


def test_three_hundred_guesses_at_one_user_delay_another_by_one_hash(place: Place) -> None:
    for n in range(300):
        place.ask("10.0.0.1", "admin", f"guess {n}")
    place.ask("10.0.0.1", "anna")
    place.work(3)
    assert "anna" in place.ended


def test_guesses_at_many_users_leave_room_for_their_own_address_after_a_bounded_queue(place: Place) -> None:
    taken = [place.ask("10.0.0.1", f"u{n}") for n in range(300)]
    assert sum(taken) == ADDRESS_MAX + 1, "the newest are refused at once"
    place.ask("10.0.0.2", "anna")
    place.work(3)
    assert "anna" in place.ended, "another address is not behind them"


def test_addresses_of_one_network_are_one(place: Place) -> None:
    taken = [place.ask(f"2001:db8::{n:x}", f"u{n}") for n in range(300)]
    assert sum(taken) == ADDRESS_MAX + 1
    place.ask("2001:db8:0:1::1", "anna")
    place.work(3)
    assert "anna" in place.ended


def test_fifteen_hundred_addresses_do_not_keep_out_who_was_right_not_long_ago(place: Place) -> None:
    place.checking.was_right("10.9.9.9", "anna")
    taken = [place.ask(f"10.0.{n // 256}.{n % 256}", f"u{n}") for n in range(1500)]
    assert sum(taken) == WAITING_MAX + 1
    assert place.ask("10.9.9.9", "anna")
    assert not place.ask("10.8.8.8", "ben"), "who is new to the broker is told that it is busy"
    place.work(2)
    assert "anna" in place.ended


def test_many_addresses_at_one_user_have_that_user_wait_alone(place: Place) -> None:
    for n in range(1500):
        place.ask(f"10.0.{n // 256}.{n % 256}", "admin")
    place.ask("10.8.8.8", "ben")
    place.work(80)
    assert "ben" in place.ended


def test_when_all_wait_the_newest_of_the_largest_address_goes(place: Place) -> None:
    for address in range(20):
        for n in range(60):
            place.ask(f"10.0.0.{address}", f"u{address}-{n}")
    assert place.ask("10.1.1.1", "anna")
    assert [name for name in place.ended if name.endswith("busy")], "somebody else is told to come again"


def test_a_wrong_answer_ends_the_precedence_and_right_ones_are_few_at_once(place: Place) -> None:
    place.checking.was_right("10.0.0.1", "mallory")
    for n in range(50):
        place.ask("10.0.0.1", "mallory", f"m{n}")
    place.ask("10.0.0.2", "anna")
    place.work(8)
    assert "anna" in place.ended
    place.checking.delay_refusal("10.0.0.1", place.now, lambda: None, user="mallory")
    place.ask("10.0.0.1", "mallory", "once more")
    place.ask("10.0.0.3", "ben")
    place.work(4)
    assert "ben" in place.ended and "once more" not in place.ended


def test_the_same_password_is_hashed_once_for_all_who_wait(place: Place) -> None:
    for n in range(300):
        assert place.ask("10.0.0.1", "fleet", f"pump {n}", key=b"the same")
    place.work()
    assert len(place.ended) == 300 and not Hand.jobs


def test_what_nobody_waits_for_is_not_computed(place: Place) -> None:
    place.ask("10.0.0.1", "first")
    for n in range(50):
        place.ask("10.0.0.1", f"gone {n}", is_here=lambda: False)
    place.ask("10.0.0.1", "anna")
    place.work(2)
    assert place.ended == ["first", "anna"]


def test_an_address_that_is_held_back_has_a_turn_now_and_then() -> None:
    queue: FairQueue[str] = FairQueue(100, Bounds())
    for n in range(BACKOFF_MAX):
        queue.begin_backoff("a", f"u{n}", 0.0)
    for _ in range(USER_BACKOFF_MAX):
        queue.begin_backoff("a", "admin", 0.0)
    queue.put("a", "guess", "admin")
    queue.put("a", "right", "anna")
    queue.put("a", "next", "ben")
    assert queue.maybe_next(0.1) is None
    assert queue.maybe_next(0.2) == "right", "one of its users that is held back has none"
    assert queue.maybe_next(0.3) is None
    assert queue.maybe_next(0.4) == "next"
    queue.end_backoff("a", "admin")
    assert queue.maybe_next(0.7) == "guess"


def test_a_broker_lets_a_right_password_in_beside_three_hundred_wrong_ones(tmp_path: Path) -> None:
    from tests.cli.test_users import passwd

    users = tmp_path / "users"
    assert passwd("-c", str(users), "anna", typed="right\n").returncode == 0
    assert passwd(str(users), "admin", typed="secret\n").returncode == 0
    broker = Rumqd(tmp_path / "data", "--set", f"auth.password_file={users}")
    broker.start()
    peers = [Peer(broker.address) for _ in range(300)]
    try:
        for n, peer in enumerate(peers):
            peer.send(wire.connect(f"g{n}", username="admin", password=b"guess %d" % n))
        anna = Peer(broker.address)
        assert anna.connect("anna", username="anna", password=b"right").code == 0
        heard, _, _ = select.select([peer.socket for peer in peers], [], [], 0)
        codes = {peer: peer.receive().code for peer in peers if peer.socket in heard}
        assert list(codes.values()).count(0x86) < 20, "few of the guesses were checked before her password"
        newest = {codes[peer] if peer in codes else peer.receive().code for peer in peers[-20:]}
        assert newest == {0x89}, "the newest of the load were told to come again later"
        assert anna.publish("t", b"x", 1) in (0, 0x10)
    finally:
        for peer in peers:
            peer.close()
        broker.end()
