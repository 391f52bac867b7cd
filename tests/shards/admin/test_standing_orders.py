"""What the operator has ordered outlives the process: bans, a drain and traces, until they are over or taken back."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.admin.operations import RequestRefused
from rumq.mqtt.reasons import Reason
from rumq.session.journal.entries import FOREVER_US, StandingOrder
from rumq.shards.admin.standing_orders import WRITTEN_SECONDS_MAX
from rumq.shards.admin.tracing import LOOK_SECONDS
from rumq.shards.clients import access_gate
from rumq.shards.recovery.journal_snapshot import PART_ORDERS
from tests.commitlog.records import NOW
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import LASTING, ask, login, publish


class Runs:
    """Runs of one shard after each other, over one disk."""

    def __init__(self) -> None:
        self.shard = Shard(SimulatedFiles())
        self._seed = 0

    def kill(self, *, away_s: float = 0.0) -> Shard:
        """kill -9, and a start so many seconds later by the wall clock; the monotonic one begins anew."""
        files, now_us = self.shard.files.after_kill(), self.shard.now_us + round(away_s * 1e6)
        self.shard.end()
        self._seed += 1
        self.shard = Shard(files, seed=self._seed, now_us=now_us)
        return self.shard


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs()
    yield made
    made.shard.end()


@pytest.mark.parametrize(("kind", "name"), [("client", "c"), ("address", "test")])
def test_a_ban_outlives_a_kill_for_as_long_as_it_was_given(runs: Runs, kind: str, name: str) -> None:
    ask(runs.shard, "ban", kind=kind, name=name, seconds=60)
    shard = runs.kill(away_s=20.0)
    assert login(shard, "c") == Reason.BANNED
    (row,) = ask(shard, "bans").bans
    assert (row.kind, row.name, row.seconds) == (kind, name, 40.0)
    assert shard.told("orders.restored") == [{"shard": 0, "bans": 1, "traces": 0, "draining": False, "left_out": 0}]
    shard.after(40.5)
    assert login(shard, "c") == Reason.SUCCESS


def test_a_ban_that_ends_while_the_broker_is_away_is_over(runs: Runs) -> None:
    ask(runs.shard, "ban", kind="client", name="c", seconds=60)
    shard = runs.kill(away_s=61.0)
    assert login(shard, "c") == Reason.SUCCESS and ask(shard, "bans").bans == []
    assert not shard.told("orders.restored"), "nothing is in force: there is nothing to tell"


def test_a_clock_that_was_set_back_makes_no_ban_longer(runs: Runs) -> None:
    ask(runs.shard, "ban", kind="client", name="c", seconds=60)
    (row,) = ask(runs.kill(away_s=-3600.0), "bans").bans
    assert row.seconds == 60.0


def test_a_ban_that_was_lifted_or_given_anew_is_as_it_was_last(runs: Runs) -> None:
    for name in "ab":
        ask(runs.shard, "ban", kind="client", name=name, seconds=60)
    ask(runs.shard, "unban", kind="client", name="a")
    ask(runs.shard, "ban", kind="client", name="b", seconds=600)
    shard = runs.kill()
    assert login(shard, "a") == Reason.SUCCESS and login(shard, "b") == Reason.BANNED
    assert [row.seconds for row in ask(shard, "bans").bans] == [600.0]
    ask(shard, "unban", kind="client", name="b")
    assert login(runs.kill(), "b") == Reason.SUCCESS


def test_a_drain_outlives_a_kill_until_it_is_taken_back(runs: Runs) -> None:
    ask(runs.shard, "drain")
    shard = runs.kill(away_s=1e6)
    assert login(shard, "c") == Reason.SERVER_UNAVAILABLE and ask(shard, "shards").shards[0].draining
    (told,) = shard.told("orders.restored")
    assert told["draining"]
    assert ask(shard, "undrain").done == 1
    assert login(runs.kill(), "c") == Reason.SUCCESS


def test_a_stop_is_no_drain(runs: Runs) -> None:
    """The broker refuses clients while it stops; that is not what an operator has ordered."""
    runs.shard.parts.writing.commit.is_draining = True
    runs.shard.after(1.0)
    assert login(runs.kill(), "c") == Reason.SUCCESS


def test_a_trace_goes_on_with_what_comes_from_then_on(runs: Runs) -> None:
    ask(runs.shard, "trace", kind="client", name="c", seconds=60)
    ask(runs.shard, "trace", kind="topic", name="t", seconds=30)
    ask(runs.shard, "trace", kind="client", name="d", seconds=60)
    ask(runs.shard, "untrace", kind="client", name="d")
    publish(runs.shard, Client(runs.shard, "c", 5, properties=LASTING), "t")
    shard = runs.kill(away_s=20.0)
    rows = ask(shard, "traces").traces
    assert {(row.kind, row.name, row.seconds) for row in rows} == {
        ("client", "c", 40.0),
        ("topic", "t", 10.0),
    }
    assert not shard.told("trace.started"), "nobody has begun one now"
    for partition in shard.store.own:
        partition._hot_bytes_max = 1 << 20
    client, other = Client(shard, "c", 5), Client(shard, "d", 5)
    shard.after(LOOK_SECONDS)
    assert not shard.told("trace.message"), "the messages from before have been told of by the other run"
    publish(shard, other, "t", "u")
    client.say(wire.subscribe(7, [("x", 0)]))
    shard.after(LOOK_SECONDS)
    assert {(each["topic"], each["offset"]) for each in shard.told("trace.message")} == {("t", 1)}
    assert {each["client_id"] for each in shard.told("trace.packet")} == {"c"}
    shard.after(41.0)
    assert ask(shard, "traces").traces == []


def test_a_snapshot_has_the_orders_in_force_and_what_comes_behind_it_counts(runs: Runs) -> None:
    shard, journal = runs.shard, runs.shard.parts.clients.journal
    for name in "abc":
        ask(shard, "ban", kind="client", name=name, seconds=600)
    ask(shard, "drain")
    ask(shard, "trace", kind="client", name="a", seconds=600)
    shard.after(100.0)
    shard.parts.writing.commit.roll(journal.partition.index)
    shard.settle()
    journal.write_snapshot(shard.now_us)
    shard.settle()
    removal = journal.take_removal()
    assert removal is not None and journal.partition.first_lsn == 0
    removal.run()
    journal.partition.removed(removal)
    assert journal.partition.first_lsn > 0, "the entries that gave the orders are gone"
    ask(shard, "unban", kind="client", name="b")
    ask(shard, "undrain")
    shard = runs.kill()
    assert {(row.name, row.seconds) for row in ask(shard, "bans").bans} == {("a", 500.0), ("c", 500.0)}
    assert [(row.name, row.seconds) for row in ask(shard, "traces").traces] == [("a", 500.0)]
    assert not ask(shard, "shards").shards[0].draining


def test_what_is_taken_back_while_a_snapshot_is_written_is_not_in_it(runs: Runs) -> None:
    shard, snapshots = runs.shard, runs.shard.parts.clients.journal._snapshots
    for number in range(PART_ORDERS + 2):
        shard.parts.clients.logins.gate.ban("client", f"c{number}", 600.0)
    snapshots.begin(shard.parts.clients.journal.layout(), shard.now_us, shard.monotonic)
    snapshots.write_part(shard.now_us)
    ask(shard, "unban", kind="client", name=f"c{PART_ORDERS}")
    ask(shard, "unban", kind="client", name="c0")
    ask(shard, "ban", kind="client", name="new")
    while snapshots.is_under_way:
        snapshots.write_part(shard.now_us)
    shard.settle()
    found = {row.name for row in ask(runs.kill(), "bans").bans}
    assert len(found) == PART_ORDERS + 1 and "new" in found
    assert found.isdisjoint({"c0", f"c{PART_ORDERS}"})


def test_an_order_is_answered_once_it_is_durable(runs: Runs) -> None:
    shard = runs.shard
    shard.parts.writing.commit.freeze(True)  # as while the shard is handed over
    answers: list[Any] = []
    shard.parts.operation.admin.answer({"ask": "ban", "kind": "client", "name": "c"})(answers.append)  # type: ignore[operator]
    shard.settle()
    assert answers == [] and login(shard, "c") == Reason.BANNED, "it is carried out at once"
    shard.parts.writing.commit.freeze(False)
    shard.settle()
    shard.settle()
    assert answers == [{"done": 1}]


def test_an_order_that_does_not_become_durable_is_answered_with_that(runs: Runs) -> None:
    shard = runs.shard
    shard.parts.writing.commit.freeze(True)
    answers: list[Any] = []
    shard.parts.operation.admin.answer({"ask": "drain"})(answers.append)  # type: ignore[operator]
    shard.settle()
    shard.after(WRITTEN_SECONDS_MAX)
    (answer,) = answers
    assert "was not durable after 5 s" in answer["error"] and ask(shard, "shards").shards[0].draining
    shard.parts.writing.commit.freeze(False)
    shard.settle()
    assert len(answers) == 1, "it is answered once"


def test_a_shard_that_has_not_recovered_takes_no_order(runs: Runs) -> None:
    """What the run before left would be added to it later, and could be what is taken back now."""
    shard = runs.shard
    shard.parts.lifecycle.is_restored = False
    for question in ({"ask": "undrain"}, {"ask": "ban", "kind": "client", "name": "c"}):
        with pytest.raises(ValueError, match="not recovered yet"):
            shard.parts.operation.admin.answer(question)
    shard.parts.lifecycle.is_restored = True
    assert ask(shard, "bans").bans == []


def test_an_order_that_is_refused_is_not_written_down(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_gate, "BANS_MAX", 1)
    ask(runs.shard, "ban", kind="client", name="a")
    with pytest.raises((ValueError, RequestRefused), match="too many bans"):
        ask(runs.shard, "ban", kind="client", name="b")
    monkeypatch.undo()
    assert [row.name for row in ask(runs.kill(), "bans").bans] == ["a"]


def test_what_there_is_no_room_for_any_more_is_told(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        ask(runs.shard, "ban", kind="client", name=name)
    monkeypatch.setattr(access_gate, "BANS_MAX", 2)
    (told,) = runs.kill().told("orders.restored")
    assert (told["bans"], told["left_out"]) == (2, 1)


def test_orders_of_a_kind_that_a_later_version_has_are_skipped(runs: Runs) -> None:
    runs.shard.parts.clients.journal.write_standing([StandingOrder("curfew", "client", "c", FOREVER_US)], NOW)
    runs.shard.settle()
    shard = runs.kill()
    assert login(shard, "c") == Reason.SUCCESS and not shard.told("orders.restored")
