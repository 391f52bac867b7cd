"""The threads of authentication: who is asked for once, who is dropped, whose refusal waits.

How they are shared out under an attack: tests/attacks/test_wrong_passwords.py."""

from collections.abc import Callable
from typing import Any

import pytest

from rumq.auth.errors import Busy
from rumq.auth.fair_queue import WAITING_MAX
from rumq.auth.identity import Work
from rumq.auth.login_backoff import FIRST_SECONDS
from rumq.shards.clients import auth_pool
from rumq.shards.clients.auth_pool import RIGHT_SECONDS, AuthPool
from tests.shards.bus.world import Hand
from tests.shards.world import ByHand


class Threads(ByHand):
    """In the place of a `Worker`: all of them have one queue."""

    made: list["Threads"]

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.is_stopped = False
        self.made.append(self)
        self.jobs = self.made[0].jobs
        self.lanes = self.made[0].lanes
        self.fd = len(self.made)

    def submit(self, job: Any, done: Any, lane: int = 0) -> None:
        if job is not auth_pool.yield_to_others:
            super().submit(job, done, lane)

    def finish(self) -> None: ...

    def stop(self) -> None:
        self.is_stopped = True


class World:
    """One thread. ended: (name, result or kind of fault), in order"""

    def __init__(self) -> None:
        self.hand = Hand()
        self.watched: list[int] = []
        self.ended: list[tuple[str, object]] = []
        self.pool = AuthPool(lambda fd, call: self.watched.append(fd), self.hand.later, lambda: self.hand.monotonic)

    def ask(self, name: str, work: Callable[[], Any] = lambda: "right", key: bytes = b"", **more: Any) -> bool:
        def done(result: object, fault: BaseException | None) -> None:
            self.ended.append((name, result if fault is None else type(fault)))

        address = more.pop("address", f"10.0.0.{len(name)}")
        return self.pool.submit(address, Work("hash", work, key), done, user=more.pop("user", name), **more)

    def work(self, count: int = 1) -> None:
        for _ in range(count):
            Threads.made[0].work()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ended]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(auth_pool, "Worker", Threads)
    monkeypatch.setitem(auth_pool.THREADS, "hash", 1)
    Threads.made = []
    return World()


def test_no_thread_is_made_before_one_is_asked_for(world: World) -> None:
    assert Threads.made == []
    world.ask("a")
    assert [each.name for each in Threads.made] == ["rumq-hash"] and world.watched == [1]
    world.ask("b")
    assert len(Threads.made) == 1
    world.pool.stop()
    assert all(each.is_stopped for each in Threads.made)


def test_as_many_jobs_run_at_once_as_there_are_threads(world: World) -> None:
    world.ask("a")
    world.ask("bb")
    assert len(Threads.made[0].jobs) == 1
    world.work(2)
    assert world.ended == [("a", "right"), ("bb", "right")]


def test_a_fault_goes_to_who_asked_and_the_thread_to_the_next(world: World) -> None:
    def fails() -> None:
        raise ConnectionRefusedError

    world.ask("a", fails)
    world.ask("bb")
    world.work(2)
    assert world.ended == [("a", ConnectionRefusedError), ("bb", "right")]


def test_equal_questions_that_wait_are_asked_once(world: World) -> None:
    world.ask("a", key=b"same")
    world.ask("b", key=b"same")
    world.ask("other", key=b"another")
    world.work(2)
    assert world.names == ["a", "b", "other"] and not Threads.made[0].jobs
    world.ask("c", key=b"same")
    assert len(Threads.made[0].jobs) == 1, "what was right a moment ago is asked again"


def test_questions_without_a_key_are_each_asked(world: World) -> None:
    world.ask("a")
    world.ask("b")
    world.work(2)
    assert world.names == ["a", "b"]


def test_what_nobody_waits_for_any_more_is_not_asked(world: World) -> None:
    ran: list[str] = []
    world.ask("first")
    world.ask("gone", lambda: ran.append("gone"), key=b"gone", is_here=lambda: False)
    world.ask("last")
    world.work(2)
    assert world.names == ["first", "last"] and ran == []
    world.ask("again", key=b"gone")
    world.work()
    assert world.names[-1] == "again", "an equal question later is not taken for the one that was dropped"


def test_a_question_is_asked_as_long_as_one_of_those_who_asked_is_here(world: World) -> None:
    world.ask("first")
    world.ask("gone", key=b"same", is_here=lambda: False)
    world.ask("here", key=b"same")
    world.work(2)
    assert world.names == ["first", "gone", "here"]


def test_beyond_the_bound_nothing_is_run_or_somebody_hears_that_the_broker_is_busy(world: World) -> None:
    taken = [world.ask(f"u{n}", address=f"10.1.{n // 250}.{n % 250}") for n in range(WAITING_MAX + 1)]
    assert all(taken) and not world.ask("late", address="10.2.0.1")
    assert world.ended == []
    world.pool.was_right("10.3.0.1", "ann")
    assert world.ask("ann", address="10.3.0.1"), "who was right here not long ago is not sent away"


def test_somebody_who_has_to_go_for_another_hears_that_the_broker_is_busy(world: World) -> None:
    for n in range(60):
        world.ask(f"u{n}", address="10.1.0.1")
    for n in range(WAITING_MAX):
        world.ask(f"v{n}", address=f"10.2.{n // 250}.{n % 250}")
    shed = [name for name, result in world.ended if result is Busy]
    assert shed and all(name.startswith("u") for name in shed), "of the address with the most"


def test_who_was_right_comes_first_for_a_week(world: World) -> None:
    world.pool.was_right("10.0.0.9", "ann")
    world.ask("running", address="10.0.0.1")
    world.ask("new", address="10.0.0.2")
    world.ask("ann", address="10.0.0.9")
    world.work(3)
    assert world.names == ["running", "ann", "new"]
    world.hand.monotonic += RIGHT_SECONDS
    world.ask("running", address="10.0.0.1")
    world.ask("new", address="10.0.0.2")
    world.ask("ann", address="10.0.0.9")
    world.work(3)
    assert world.names[3:] == ["running", "new", "ann"]


def test_only_the_latest_of_those_who_were_right_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth_pool, "RIGHT_MAX", 2)
    for name in ("a", "b", "a", "c"):
        world.pool.was_right("10.0.0.9", name)
    world.pool.was_right("10.0.0.9", None)  # anonymous: nobody to remember
    world.ask("running")
    for name in ("n", "b", "c", "a"):
        world.ask(name, address="10.0.0.1" if name == "n" else "10.0.0.9")
    world.work(5)
    assert {*world.names[1:3]} == {"a", "c"}


def test_a_refusal_waits_twice_as_long_each_time_and_ends_the_precedence(world: World) -> None:
    told: list[str] = []
    world.pool.was_right("10.0.0.9", "eve")
    for n in range(3):
        world.pool.delay_refusal("10.0.0.9", world.hand.monotonic, lambda n=n: told.append(f"no {n}"), user="eve")
    assert [seconds for seconds, _ in world.hand.waiting] == [FIRST_SECONDS * 2**n for n in range(3)]
    assert told == []
    world.hand.waiting[0][1]()
    assert told == ["no 0"]
    world.ask("running")
    world.ask("new", address="10.0.0.1")
    world.ask("eve", address="10.0.0.9")
    world.work(3)
    assert world.names == ["running", "new", "eve"]


def test_without_a_delay_a_refusal_goes_out_at_once(world: World) -> None:
    world.pool.guesses.seconds_max = 0
    told: list[str] = []
    world.pool.delay_refusal("10.0.0.9", 0.0, lambda: told.append("no"))
    assert told == ["no"] and world.hand.waiting == []
