"""Committed offsets in the journal of shard 0: read in pages, written in pieces, and given up once nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from rumq.admin.socket import held_values
from rumq.admin.socket import kept_values as kv
from rumq.admin.socket.held_values import pieces
from rumq.kafka.groups.commit_entries import Commit, Forget
from rumq.kafka.groups.commit_store import CommitsLost
from rumq.kafka.nodes.shard_commits import ShardCommits, kept_of, take_over


class Leader:
    """Answers as the leader of shard 0 does. fails: raises it once, before it is done or after; asked: so far"""

    def __init__(self, values: dict[bytes, bytes], page: int = 2) -> None:
        self.values, self._page = values, page
        self.fails: Callable[[], None] = lambda: None
        self.error = ""
        self.asked: list[kv.KeptQuestion] = []

    async def __call__(self, asked: kv.KeptQuestion, seconds: float) -> kv.KeptReply:
        self.asked.append(msgspec.json.decode(msgspec.json.encode(asked), type=kv.KeptQuestion))
        self.fails()
        if self.error:
            return kv.KeptReply(self.error)
        if isinstance(asked, kv.TakeOver):
            return kv.KeptReply(holder=3)
        if isinstance(asked, kv.ReadPage):
            found = list(self.values.items())[asked.first :]
            return kv.KeptReply(values=found[: self._page], left=max(0, len(found) - self._page))
        if isinstance(asked, kv.KeepValues):
            self.values.update(asked.values)
        return kv.KeptReply()


def commit(number: int, offset: int = 7) -> Commit:
    return Commit("anna", "g", "main", number, offset, -1, "", 5)


def lose() -> None:
    raise ConnectionResetError("it closed the connection")


def run(scene: Any) -> None:
    trio.run(scene)


async def taken(leader: Leader) -> ShardCommits:
    return await take_over(leader)


def test_all_pages_are_read_once() -> None:
    async def scene() -> None:
        leader = Leader(dict(kept_of(commit(number)) for number in range(5)))
        commits = await taken(leader)
        assert commits.turn == 3 and commits.read() == [commit(number) for number in range(5)]
        assert commits.read() == []

    run(scene)


def test_the_last_entry_of_a_place_counts_and_what_is_forgotten_is_empty() -> None:
    assert kept_of(commit(1, 7))[0] == kept_of(commit(1, 9))[0] != kept_of(commit(2))[0]
    assert kept_of(Forget("anna", "g", "main", 1)) == (kept_of(commit(1))[0], b"")


def test_a_question_has_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_values, "PAGE_BYTES_MAX", 10)
    values = [(bytes([number]), b"x" * size) for number, size in enumerate([4, 4, 5, 30, 1])]
    found = list(pieces(values))
    assert [len(each) for each in found] == [2, 1, 1, 1]
    assert [each for some in found for each in some] == values
    line = msgspec.json.encode(kv.KeepValues(1 << 62, [(b"n" * kv.PAGE_BYTES_MAX, b"v")]))
    assert len(line) < kv.LINE_BYTES_MAX, "as long as one may be in base64"


@pytest.mark.parametrize("error", ["", "another process has taken the values over"])
def test_once_a_write_was_not_answered_nothing_is_until_it_is_taken_over_anew(error: str) -> None:
    """Perhaps it was written: who went on would tell what was before."""

    async def scene() -> None:
        leader = Leader({})
        commits = await taken(leader)
        await commits.keep([commit(0)], tuple)
        assert await commits.is_current()
        leader.fails, leader.error = (lambda: None if error else lose()), error
        with pytest.raises(CommitsLost):
            await commits.keep([commit(0, 8)], tuple)
        assert commits.lost.is_set()
        leader.fails, leader.error = lambda: None, ""
        count = len(leader.asked)
        with pytest.raises(CommitsLost):
            await commits.keep([commit(0, 9)], tuple)
        assert not await commits.is_current() and len(leader.asked) == count
        again = await taken(leader)
        assert again.read() == [commit(0)]

    run(scene)


def test_what_cannot_be_read_is_not_taken_over() -> None:
    async def scene() -> None:
        with pytest.raises(CommitsLost, match="cannot be read"):
            await taken(Leader({b"a": b"\xc1"}))
        leader = Leader({})
        leader.error = "the shard has not recovered yet"
        with pytest.raises(CommitsLost, match="recovered"):
            await taken(leader)

    run(scene)


def test_of_a_broker_that_became_a_node_what_the_cluster_does_not_know_is_kept() -> None:
    async def scene() -> None:
        leader = Leader(dict([kept_of(commit(0, 9))]))
        commits = await taken(leader)
        await commits.keep_missing([commit(0, 3), commit(1, 4)])
        assert commits.read() == [commit(0, 9), commit(1, 4)]
        assert leader.values == dict([kept_of(commit(0, 9)), kept_of(commit(1, 4))])

    run(scene)


def test_many_that_ask_at_once_whether_it_is_current_share_one_question_that_began_behind_them() -> None:
    """Each OffsetFetch asks: the socket takes few at once, and one that it did not take would end the office."""

    async def scene() -> None:
        leader = Leader({})
        commits = await taken(leader)
        open_questions, most, held = 0, 0, trio.Event()

        async def ask(asked: kv.KeptQuestion, seconds: float) -> kv.KeptReply:
            nonlocal open_questions, most
            open_questions += 1
            most = max(most, open_questions)
            await held.wait()
            open_questions -= 1
            return await leader(asked, seconds)

        commits = ShardCommits(held_values.HeldValues(ask, 3), [])
        count, found = len(leader.asked), list[bool]()

        async def one() -> None:
            found.append(await commits.is_current())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(100):
                nursery.start_soon(one)
            await trio.testing.wait_all_tasks_blocked()
            held.set()
        assert found == [True] * 101 and most == 1 and len(leader.asked) == count + 2

    run(scene)


def test_a_client_that_leaves_while_it_asks_does_not_end_the_office() -> None:
    async def scene() -> None:
        leader = Leader({})
        held = trio.Event()

        async def ask(asked: kv.KeptQuestion, seconds: float) -> kv.KeptReply:
            await held.wait()
            return await leader(asked, seconds)

        commits = ShardCommits(held_values.HeldValues(ask, 3), [])
        found = list[bool]()

        async def one() -> None:
            found.append(await commits.is_current())

        async with trio.open_nursery() as nursery:
            leaving = trio.CancelScope()
            with leaving:
                leaving.deadline = trio.current_time()
                await commits.is_current()
            assert leaving.cancelled_caught and not commits.lost.is_set()
            with trio.CancelScope() as leaving:
                nursery.start_soon(one)
                leaving.cancel()
            await trio.testing.wait_all_tasks_blocked()
            held.set()
        assert found == [True]

    run(scene)
