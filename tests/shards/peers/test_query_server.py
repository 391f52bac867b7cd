"""Answers to other shards: what they may read, in which pieces, and what becomes of an answer that fails.

The other side, and what a shard asks after a crash: test_query_client.py."""

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.read.cold_reads import publishers_in
from commitlog.row_layout import ROW_EMPTY, ROW_RETAIN
from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.matching.retained import RetainedRecord
from router.shard import ShardRouter
from rumq.loop.read_gate import ReadGate
from rumq.shards.bus import messages as m
from rumq.shards.peers.query_server import (
    BUSY_SECONDS,
    RETAINED_A_PIECE,
    Asker,
    QueryServer,
    RestartQueries,
    new_names,
)
from tests.commitlog.records import NOW, append, opened, write
from tests.shards.bus.world import Hand
from tests.shards.world import ByHand


class Link:
    """said: messages; raw: what came with them"""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.raw: list[tuple[Any, ...]] = []
        self.closed = False
        self.transport = SimpleNamespace(room=1)

    def say(self, message: Any, *raw: Any) -> None:
        self.said.append(message)
        self.raw.append(raw)


class World:
    def __init__(self, files: SimulatedFiles | None = None) -> None:
        self.files = files or SimulatedFiles()
        self.store = opened(self.files, hot=1 << 20, seed=files is not None)
        self.partition = self.store.own[0]
        self.router = ShardRouter([self.partition])
        self.pool, self.hand, self.link = ByHand(), Hand(), Link()
        self.introduced: list[tuple[int, set[int]]] = []  # partition, and the numbers of publishers
        self.searches: list[tuple[m.StartQuestion, Callable[[Any, BaseException | None], None]]] = []
        self.left: list[tuple[int, int, Callable[[], None]]] = []
        self.sent = 0  # of what the other shard wants, the lsn before which all has gone out
        names: Any = SimpleNamespace(
            sent=lambda index: self.sent,
            introduce=lambda index, rows, own=None: self.introduced.append((index, publishers_in(rows))),
        )
        link: Any = self.link
        self.asker = Asker(1, link, names)
        self.is_newest = True
        self.server = QueryServer(
            self.store, self.router, self.pool, self.hand, lambda *search: self.searches.append(search),
            lambda *left: self.left.append(left), reads=ReadGate(lambda: self.is_newest, self.hand),
        )  # fmt: skip

    def append(self, *payloads: bytes) -> None:
        """A committed chunk, which the router has seen."""
        chunk = append(self.partition, [(b"t", each) for each in payloads])
        write(self.partition)
        feed = self.router.feeds[0]
        feed.appended(chunk)
        feed.committed(self.partition.committed_lsn)

    def retain(self, payload: bytes) -> None:
        """A committed chunk of one retained message, which the router has seen."""
        flags = 1 | ROW_RETAIN | (0 if payload else ROW_EMPTY)
        chunk = append(self.partition, [(b"t", payload)], flags=FLAG_QOS | FLAG_RETAIN, row_flags=flags)
        write(self.partition)
        self.router.step([c.Appended(0, chunk), c.Committed(0, self.partition.committed_lsn)])

    def payloads(self, question: m.RetainedQuestion) -> list[bytes]:
        """The last byte of each message that is answered."""
        self.link.said.clear()
        self.server.find_retained(self.asker, question)
        while not self.link.said or self.link.said[-1].more:
            self.turn()
        return [item.frame[-1:] for answer in self.link.said for item in answer.retained]

    def turn(self) -> None:
        waiting, self.hand.waiting = self.hand.waiting, []
        for _, call in waiting:
            call()


@pytest.mark.parametrize("last", [b"2", b""], ids=["replaced", "removed"])
def test_another_shard_gets_what_was_retained_where_it_stands(last: bytes) -> None:
    """The next message is on its way to it, as a live one: of the topic it would get no retained message at all."""
    world = World()
    world.router.retained.replaced_bytes_max = 1 << 20
    world.retain(b"0")
    world.retain(b"1")
    stands_at = world.partition.next_lsn
    world.retain(last)
    for below, payload in (
        (stands_at, b"1"),
        (stands_at - 1, b"0"),
        (0, None),
        (stands_at + 1, last or None),
    ):
        found = world.payloads(m.RetainedQuestion(7, "+", {0: below}))
        assert found == ([] if payload is None else [payload])


def test_a_shard_that_was_away_gets_no_retained_message_that_was_replaced() -> None:
    """It is to come as the first of the live ones, and not as what was acknowledged last."""
    world = World()
    world.router.retained.replaced_bytes_max = 1 << 20
    world.retain(b"0")
    stands_at = world.partition.next_lsn
    world.retain(b"1")
    for is_met, payloads in ((True, [b"0"]), (False, [])):
        assert world.payloads(m.RetainedQuestion(7, "+", {0: stands_at}, is_met)) == payloads


def test_what_has_been_replaced_by_a_message_that_was_sent_already_does_not_come_behind_it() -> None:
    world = World()
    world.router.retained.replaced_bytes_max = 1 << 20
    world.retain(b"0")
    stands_at = world.partition.next_lsn
    world.retain(b"1")
    world.retain(b"2")
    for world.sent, payload in ((stands_at, b"0"), (stands_at + 1, None), (stands_at + 2, None)):
        found = world.payloads(m.RetainedQuestion(7, "+", {0: stands_at}))
        assert found == ([] if payload is None else [payload]), "the live one is on its way, before this answer"


def test_what_is_in_memory_is_answered_at_once_with_the_names_of_its_topics() -> None:
    world = World()
    world.append(b"1", b"2")
    world.append(b"3")
    world.server.read(world.asker, m.ReadFrom(7, 0, 0))
    (answer,) = world.link.said
    assert (answer.request, answer.partition, answer.topics, answer.fault) == (7, 0, [(0, b"t")], "")
    (piece,) = answer.pieces
    assert (piece.base_lsn, piece.next_lsn) == (0, 3), "two small chunks as one"
    rows, frames = world.link.raw[0]
    assert (len(rows), len(frames)) == (piece.rows_len, piece.frames_len) == (96, len(frames))
    assert world.introduced == [(0, {0}), (0, {0})] and not world.pool.jobs


def test_what_readers_here_do_not_see_yet_is_not_shown_to_others() -> None:
    """A crash could still take it back."""
    world = World()
    world.append(b"1")
    chunk = append(world.partition, [(b"t", b"2")])
    world.router.feeds[0].appended(chunk)
    world.server.read(world.asker, m.ReadFrom(7, 0, 0))
    assert [piece.next_lsn for piece in world.link.said[0].pieces] == [1]


@pytest.fixture
def restarted() -> World:
    """Two records are on the disk, and nothing is in memory."""
    before = World()
    before.append(b"1")
    before.append(b"2")
    return World(before.files.after_kill())


def test_what_is_on_the_disk_is_read_on_a_thread(restarted: World) -> None:
    restarted.server.read(restarted.asker, m.ReadFrom(7, 0, 0))
    assert restarted.link.said == []
    restarted.pool.work()
    assert [(piece.base_lsn, piece.next_lsn) for piece in restarted.link.said[0].pieces] == [(0, 2)]


def test_a_disk_that_fails_is_part_of_the_answer(restarted: World) -> None:
    restarted.server.read(restarted.asker, m.ReadFrom(7, 0, 0))
    _, done = restarted.pool.jobs.popleft()
    done(None, OSError(errno.EIO, "broken"))
    (answer,) = restarted.link.said
    assert answer.pieces == [] and "broken" in answer.fault


def message(number: int) -> RetainedRecord:
    return RetainedRecord(f"t/{number}", 0, number, NOW, bytes(32), b"frame")


def test_what_was_retained_at_the_start_of_a_replay_comes_in_pieces_and_the_lsns_last() -> None:
    world = World()
    world.server.find_start(world.asker, m.StartQuestion(7, NOW, None, None, "#"))
    ((question, done),) = world.searches
    assert question.retained == "#"
    done(({0: 4}, [message(number) for number in range(RETAINED_A_PIECE + 1)]), None)
    assert [(len(each.retained), each.more, each.lsns) for each in world.link.said] == [
        (RETAINED_A_PIECE, True, {}), (1, True, {}), (0, False, {0: 4}),
    ]  # fmt: skip
    assert world.introduced == [(0, {0})], "and the publishers' names before them"


def test_a_search_that_fails_is_an_answer_too() -> None:
    world = World()
    world.server.find_start(world.asker, m.StartQuestion(7, NOW, None, None, None))
    world.searches[0][1](None, OSError(errno.EIO, "broken"))
    (answer,) = world.link.said
    assert (answer.lsns, answer.more) == ({}, False) and "broken" in answer.fault


def retained(world: World, count: int) -> None:
    for number in range(count):
        world.router.retained.put(message(number))


def test_what_is_retained_now_comes_some_a_turn() -> None:
    world = World()
    retained(world, 1000)
    world.server.find_retained(world.asker, m.RetainedQuestion(7, "#", {0: 900}))
    assert len(world.link.said) == 1
    while world.hand.waiting:
        world.turn()
    assert len(world.link.said) > 2 and [each.more for each in world.link.said][-2:] == [True, False]
    found = {item.lsn for each in world.link.said for item in each.retained}
    assert found == {*range(900)}, "newer ones come live"


def test_a_bus_that_is_full_is_waited_for() -> None:
    world = World()
    retained(world, 10)
    world.link.transport.room = 0
    world.server.find_retained(world.asker, m.RetainedQuestion(7, "#", {0: 10}))
    assert world.link.said == [] and [seconds for seconds, _ in world.hand.waiting] == [BUSY_SECONDS]
    world.link.transport.room = 1
    while world.hand.waiting:
        world.turn()
    assert sum(len(each.retained) for each in world.link.said) == 10


def test_nobody_is_searched_for_whose_link_is_closed() -> None:
    world = World()
    retained(world, 1000)
    world.server.find_retained(world.asker, m.RetainedQuestion(7, "#", {0: 1000}))
    world.link.closed = True
    world.turn()
    assert len(world.link.said) == 1 and world.hand.waiting == []


def test_a_removal_of_the_asker_is_answered_once_losses_here_are_counted() -> None:
    world = World()
    world.server.leaving(world.asker, m.Leaving(7, 0, 40))
    ((index, lsn, then),) = world.left
    assert (index, lsn) == (0, 40) and world.link.said == []
    then()
    assert world.link.said == [m.Wanted(7)]


@pytest.mark.parametrize("question", ["tags", "resume"])
def test_a_question_after_a_crash_that_cannot_be_answered_is_given_up_with_its_link(question: str) -> None:
    """It is asked again over the next one: no answer would be taken for `nothing was published`."""
    world = World()
    given_up: list[object] = []
    guard: Any = SimpleNamespace(given_up=lambda link, fault: given_up.append((link, type(fault))))
    restarts = RestartQueries(world.store, world.pool, world.hand, world.hand, guard, lambda index: None)
    if question == "tags":
        restarts.find_tags(world.asker, m.FindTags(7, {0: 0}))
    else:
        restarts.resume(world.asker, 9, m.Resume(0, 0))
    _, done = world.pool.jobs.popleft()
    done(None, OSError(errno.EIO, "broken"))
    assert given_up == [(world.link, OSError)] and world.link.said == []


def test_a_name_is_told_once() -> None:
    world = World()
    chunk = append(world.partition, [(b"a", b""), (b"b", b""), (b"a", b"")])
    seen = bytearray(2)
    assert new_names(world.partition, chunk.rows, seen) == [(0, b"a"), (1, b"b")]
    assert new_names(world.partition, chunk.rows, seen) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda world: world.server.find_retained(world.asker, m.RetainedQuestion(1, topic_filter="#", below={})),
        lambda world: world.server.find_start(world.asker, m.StartQuestion(1, None, None, None, None)),
    ],
)
def test_r15_questions_wait_while_another_leader_may_have_newer_messages(ask: Callable[[Any], None]) -> None:
    world = World()
    world.is_newest = False
    ask(world)
    assert not world.link.said and not world.searches and world.hand.waiting
    world.is_newest = True
    while world.hand.waiting:
        waiting, world.hand.waiting = world.hand.waiting, []
        for _, call in waiting:
            call()
    assert world.link.said or world.searches
