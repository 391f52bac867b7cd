"""Events over HTTP: of all shards and of the gateway, once each, in order; a cursor waits, and losses are told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import merged
from rumq.admin.operations import OPERATIONS, Operation, request_of
from rumq.errors import RumqError
from rumq.events.event_ring import EventRing
from rumq.gateway.broker.event_feed import WAITING_MAX, EventFeed, TooManyWait
from rumq.shards.admin.queries.recent_events import RecentEvents
from tests.gateway.conftest import Gateway, started


def told(ring: EventRing, name: str, time_us: int, level: str = "info", **fields: Any) -> None:
    line = {"time": "2026-11-22T00:00:00.000Z", "level": level, "event": name, "floor": "rumq", **fields}
    ring.add(time_us, level, name, json.dumps(line).encode())


class Broker:
    """Shards with their rings, asked as over their sockets. asked: how often; is_away: none answers"""

    def __init__(self, shards: int = 2) -> None:
        self.rings = [EventRing(run=100 + index) for index in range(shards)]
        self.asked = 0
        self.is_away = False

    async def ask(self, operation: Operation, request: q.Request) -> a.Answer:
        self.asked += 1
        if self.is_away:
            raise RumqError("away")
        question = {"ask": "events", **msgspec.to_builtins(request)}
        replies = []
        for index, ring in enumerate(self.rings):
            reply = RecentEvents(index, ring).events(request_of(question)[1])
            replies.append(msgspec.json.decode(msgspec.json.encode(reply)))
        return merged(operation, request, replies)


@pytest.fixture
def broker() -> Broker:
    return Broker()


def names(answer: a.Events) -> list[str]:
    return [each.event for each in answer.events]


def run(body: Callable[[], Any]) -> Any:
    return trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


def direct(broker: Broker, **asked: Any) -> a.Events:
    """As `rumqd ask events` gets it."""
    answer = trio.run(broker.ask, OPERATIONS["events"], q.Events(**asked))
    assert isinstance(answer, a.Events)
    return answer


def test_shards_are_merged_by_time_and_each_event_is_given_once(broker: Broker) -> None:
    told(broker.rings[0], "a.first", 10)
    told(broker.rings[1], "a.second", 20, client_id="c")
    told(broker.rings[0], "a.third", 30)
    answer = direct(broker)
    assert [(each.event, each.shard, each.fields) for each in answer.events] == [
        ("a.first", 0, {}), ("a.second", 1, {"client_id": "c"}), ("a.third", 0, {}),
    ]  # fmt: skip
    assert names(direct(broker, after=answer.cursor)) == []
    assert names(direct(broker, after=answer.events[0].cursor)) == ["a.second", "a.third"]
    told(broker.rings[1], "a.fourth", 40)
    assert names(direct(broker, after=answer.cursor)) == ["a.fourth"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_whoever_asks_again_and_again_gets_all_however_few_an_answer_has(limit: int) -> None:
    broker = Broker(3)
    for number in range(20):
        told(broker.rings[number * 7 % 3], f"a.n{number}", number)
    cursor, got = "", []
    while page := direct(broker, after=cursor, limit=limit).events:
        got += [each.event for each in page]
        cursor = page[-1].cursor
    assert got == [f"a.n{number}" for number in range(20)]


def test_the_newest_are_given_without_a_cursor_and_what_was_cut_off_does_not_come_later(
    broker: Broker,
) -> None:
    for number in range(6):
        told(broker.rings[0 if number < 4 else 1], f"a.n{number}", number)
    answer = direct(broker, limit=2)
    assert names(answer) == ["a.n4", "a.n5"]
    assert names(direct(broker, after=answer.events[0].cursor)) == ["a.n5"]
    assert names(direct(broker, after=answer.cursor)) == []


def test_what_is_no_longer_kept_is_counted_as_lost(broker: Broker) -> None:
    broker.rings[0] = EventRing(run=1, events_max=3)
    told(broker.rings[0], "a.n0", 0)
    cursor = direct(broker).cursor
    for number in range(1, 6):
        told(broker.rings[0], f"a.n{number}", number)
    answer = direct(broker, after=cursor)
    assert names(answer) == ["a.n3", "a.n4", "a.n5"] and answer.lost == 2


def test_bytes_are_bounded_too() -> None:
    ring = EventRing(run=1, bytes_max=1_000)
    for number in range(50):
        told(ring, f"a.n{number}", number, why="x" * 300)
    assert 1 <= ring.next - ring.first <= 3
    told(ring, "a.large", 50, why="x" * 5_000)
    assert ring.next - ring.first == 1, "the newest is kept, whatever its size"


def test_after_a_restart_of_a_shard_its_new_events_come_and_those_of_others_are_not_given_again(
    broker: Broker,
) -> None:
    told(broker.rings[0], "a.old", 1)
    told(broker.rings[1], "a.other", 2)
    cursor = direct(broker).cursor
    broker.rings[0].begin(run=999)
    told(broker.rings[0], "a.fresh", 3)
    answer = direct(broker, after=cursor)
    assert names(answer) == ["a.fresh"]
    assert names(direct(broker, after=answer.cursor)) == []


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"level": "warning"}, ["client.refused", "log.failed"]),
        ({"event": "client.*"}, ["client.connected", "client.refused"]),
        ({"event": "client.*", "level": "error"}, []),
    ],
)
def test_events_are_chosen_by_level_and_name(asked: dict[str, Any], found: list[str]) -> None:
    broker = Broker(1)
    told(broker.rings[0], "client.connected", 1)
    told(broker.rings[0], "client.refused", 2, "warning")
    told(broker.rings[0], "log.failed", 3, "error")
    answer = direct(broker, **asked)
    assert names(answer) == found
    told(broker.rings[0], "client.lost", 4)
    assert names(direct(broker, after=answer.cursor, event="client.*")) == ["client.lost"]


@pytest.mark.parametrize("cursor", ["x", "0.1", "0.1.2,", "-1.2.3", "1.2.3.4"])
def test_a_cursor_that_nobody_gave_is_refused(broker: Broker, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        direct(broker, after=cursor)

    async def poll() -> None:
        await EventFeed(broker.ask, EventRing(1)).answer(q.Events(after="x"), 0)

    with pytest.raises(ValueError, match="cursor"):
        run(poll)


def test_a_poll_waits_for_the_next_event_of_a_shard_or_of_the_gateway(broker: Broker) -> None:
    own = EventRing(run=7)
    told(broker.rings[0], "a.first", 1)
    told(own, "gateway.first", 2)

    async def body() -> None:
        feed = EventFeed(broker.ask, own)
        before = await feed.answer(q.Events(), 25)
        assert [(each.event, each.source, each.shard) for each in before.events] == [
            ("a.first", "shard", 0), ("gateway.first", "gateway", None),
        ]  # fmt: skip
        got: list[str] = []

        async def poll() -> None:
            got.extend(names(await feed.answer(q.Events(after=before.cursor, event="b.*"), 25)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await trio.sleep(3)
            told(broker.rings[1], "a.unwanted", 3)
            await trio.sleep(3)
            assert not got
            told(own, "b.wanted", 4)
        assert got == ["b.wanted"] and trio.current_time() < 8
        nothing = await feed.answer(q.Events(after=before.cursor, event="none.*"), 5)
        assert not nothing.events
        assert names(await feed.answer(q.Events(after=nothing.cursor), 0)) == []

    run(body)


def test_many_polls_cost_the_shards_no_more_than_one_and_their_number_is_bounded(broker: Broker) -> None:
    async def body() -> None:
        feed = EventFeed(broker.ask, EventRing(1))
        refused = 0

        async def poll() -> None:
            nonlocal refused
            try:
                await feed.answer(q.Events(after=cursor), 10)
            except TooManyWait:
                refused += 1

        cursor = (await feed.answer(q.Events(), 0)).cursor
        async with trio.open_nursery() as nursery:
            for _ in range(1_000):
                nursery.start_soon(poll)
        assert refused == 1_000 - WAITING_MAX
        assert broker.asked <= 2 * 10 + 2

    run(body)


def test_nobody_is_asked_while_nobody_polls(broker: Broker) -> None:
    async def body() -> None:
        feed = EventFeed(broker.ask, EventRing(1))
        await feed.answer(q.Events(), 0)
        before = broker.asked
        await trio.sleep(1_000)
        assert broker.asked == before

    run(body)


def test_a_cursor_of_an_earlier_run_of_the_gateway_goes_on_by_time(broker: Broker) -> None:
    async def body() -> None:
        told(broker.rings[0], "a.first", 1)
        told(broker.rings[1], "a.second", 2)
        before = await EventFeed(broker.ask, EventRing(1)).answer(q.Events(), 0)
        told(broker.rings[0], "a.third", 3)
        again = EventFeed(broker.ask, EventRing(2))
        assert names(await again.answer(q.Events(after=before.events[0].cursor), 0)) == [
            "a.second",
            "a.third",
        ]
        third = await again.answer(q.Events(after=before.cursor), 0)
        assert names(third) == ["a.third"]
        assert names(await again.answer(q.Events(after=third.cursor), 0)) == []

    run(body)


def test_losses_of_a_shard_reach_those_who_poll(broker: Broker) -> None:
    async def body() -> None:
        broker.rings[0] = EventRing(run=1, events_max=2)
        feed = EventFeed(broker.ask, EventRing(1))
        cursor = (await feed.answer(q.Events(), 0)).cursor
        for number in range(5):
            told(broker.rings[0], f"a.n{number}", number)
        await trio.sleep(1)
        answer = await feed.answer(q.Events(after=cursor), 0)
        assert names(answer) == ["a.n3", "a.n4"] and answer.lost == 3
        assert (await feed.answer(q.Events(after=answer.cursor), 0)).lost == 0

    run(body)


def test_while_shards_are_away_polls_wait_and_then_go_on(broker: Broker) -> None:
    async def body() -> None:
        feed = EventFeed(broker.ask, EventRing(1))
        cursor = (await feed.answer(q.Events(), 0)).cursor
        broker.is_away = True
        told(broker.rings[0], "a.first", 1)
        assert names(await feed.answer(q.Events(after=cursor), 5)) == []
        broker.is_away = False
        assert names(await feed.answer(q.Events(after=cursor), 5)) == ["a.first"]

    run(body)


def test_events_that_other_processes_send_are_shown_and_bad_datagrams_are_not(broker: Broker) -> None:
    async def body() -> None:
        feed = EventFeed(broker.ask, EventRing(1))
        line = {"event": "shard.died", "level": "error", "floor": "rumq.shard", "shard": 1}
        feed.take(json.dumps({"source": "supervisor", "time_us": 3, "line": line}).encode())
        for bad in (b"", b"x", b"{}", b'{"source": "s", "time_us": 1, "line": {}}', b"\xff" * 100):
            feed.take(bad)
        (row,) = (await feed.answer(q.Events(), 0)).events
        assert (row.event, row.source, row.shard, row.fields) == (
            "shard.died",
            "supervisor",
            None,
            {"shard": 1},
        )

    run(body)


def test_events_of_the_supervisor_are_shown(tmp_path: Path) -> None:
    gateway = started(tmp_path, shards=2)
    try:
        cursor, seen = "", []
        while ("broker.ready", "supervisor") not in seen:
            answer = gateway.get(f"events?wait=20&after={cursor}" if cursor else "events")
            cursor = answer["cursor"]
            seen += [(each["event"], each["source"]) for each in answer["events"]]
        assert seen.count(("broker.starting", "supervisor")) == 1
        assert ("shard.linked", "shard") in seen and ("listener.bound", "gateway") in seen
    finally:
        gateway.broker.end()


def test_events_of_a_broker_and_its_traces_are_polled(gateway: Gateway) -> None:
    cursor = gateway.get("events")["cursor"]
    gateway.act("trace", kind="topic", name="traced/t", seconds=60)
    assert gateway.publish({"topic": "traced/t", "payload": "x"}).status == 200
    seen: list[dict[str, Any]] = []
    while not any(each["event"] == "trace.message" for each in seen):
        answer = gateway.get(f"events?after={cursor}&wait=20")
        assert answer["events"], "within 20 s"
        cursor = answer["cursor"]
        seen += answer["events"]
        if any(each["event"] == "trace.started" for each in answer["events"]):
            gateway.publish({"topic": "traced/t", "payload": "y"})
    started = next(each for each in seen if each["event"] == "trace.started")
    assert started["shard"] == 0 and started["fields"]["whom"] == "traced/t"
    action = next(each for each in seen if each["event"] == "admin.action")
    assert (action["source"], action["shard"], action["fields"]["token"]) == ("gateway", None, "ops")
    assert gateway.ask("GET", "/api/v1/events?wait=26").status == 400
    assert gateway.ask("GET", "/api/v1/events?limit=201").status == 400
    assert gateway.ask("GET", "/api/v1/events?after=nonsense").status == 400
    assert gateway.ask("GET", "/api/v1/events", token="sender").status == 403
