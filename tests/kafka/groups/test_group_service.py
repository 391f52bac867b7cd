"""Committed offsets as time passes: kept while their group is used, and after that for as long as was promised."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.commit_file import CommitFile
from rumq.kafka.groups.coordinator import SESSION_SECONDS_MAX
from rumq.kafka.groups.group_service import EXPIRY_SECONDS, RENEWALS, GroupService
from rumq.kafka.groups.messages import Leaver
from rumq.kafka.protocol.errors import ErrorCode
from tests.kafka.groups.group_clients import BOUNDS, KEY, NETWORK, request

DAY_MS = 86_400_000
KEEP_MS = 7 * DAY_MS


class Serving:
    """A service, what its clock says, and the disk that the next one finds."""

    def __init__(self, files: SimulatedFiles | None = None, now_ms: int = 0) -> None:
        if files is None:
            files = SimulatedFiles()
            files.make_directory("d")
            files.sync_directory(".")
        self.files, self.now_ms = files, now_ms
        self.service = GroupService(CommitFile(files, "d"), BOUNDS, KEEP_MS, lambda *_, **__: None, lambda: self.now_ms)

    def again(self) -> Serving:
        """After a kill -9."""
        return Serving(self.files.after_kill(), self.now_ms)

    def save(self, *entries: Any) -> None:
        self.service._file.append(entries, self.service.offsets.all)
        self.service.offsets.take(entries)

    def look(self) -> None:
        """For what is out of date, as once a minute."""
        if entries := self.service._out_of_date():
            self.save(*entries)

    async def written(self) -> None:
        """All that waits, and who waits for it knows."""
        await self.service._write_made(list, 0)
        await wait_all_tasks_blocked()

    @property
    def offsets(self) -> list[int]:
        return [each.offset for each in self.service.offsets.of(KEY).values()]

    async def join(self) -> str:
        """returns: the id of a member that is alone"""
        found = await self.service.join(KEY, NETWORK, request(names_first=False))
        assert found.error == ErrorCode.NONE
        return found.member_id


def commit(offset: int, at_ms: int = 0) -> Commit:
    return Commit(*KEY, "main", 0, offset, -1, "", at_ms)


def run(scene: Any) -> None:
    trio.run(scene, clock=MockClock(autojump_threshold=0.01))


def test_offsets_of_a_group_in_use_are_kept_though_nothing_is_committed_and_the_server_is_killed() -> None:
    """librdkafka commits only what has changed: on a quiet topic nothing for weeks."""

    async def scene() -> None:
        here = Serving()
        here.save(commit(5))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.service.run)
            member = await here.join()
            for _ in range(30):
                here.now_ms += DAY_MS
                here.look()
            nursery.cancel_scope.cancel()
        after = here.again()
        left_ms = here.now_ms
        after.look()
        assert after.offsets == [5], "its member was there until the kill"
        after.now_ms = left_ms + KEEP_MS - KEEP_MS // RENEWALS - DAY_MS // 2
        after.look()
        assert after.offsets == [5] and member
        after.now_ms = left_ms + KEEP_MS + DAY_MS
        after.look()
        assert after.offsets == [] == after.again().offsets

    run(scene)


def test_a_member_that_came_and_left_between_two_looks_keeps_its_offsets() -> None:
    async def scene() -> None:
        here = Serving()
        here.save(commit(5))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.service.run)
            here.now_ms = KEEP_MS - 1
            assert here.service.leave(KEY, [Leaver(await here.join(), None)]) == [ErrorCode.NONE]
            here.now_ms += 2
            here.look()
            assert here.offsets == [5]
            here.now_ms += KEEP_MS + 1
            here.look()
            assert here.offsets == []
            nursery.cancel_scope.cancel()

    run(scene)


def test_after_a_start_members_have_the_longest_session_to_come_back() -> None:
    """Also if the machine was off for longer than offsets are kept."""

    async def scene() -> None:
        here = Serving()
        here.save(commit(5))
        here = here.again()
        here.now_ms = KEEP_MS + DAY_MS
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.service.run)
            await trio.sleep(SESSION_SECONDS_MAX - 1)
            assert here.offsets == [5]
            await trio.sleep(EXPIRY_SECONDS)
            assert here.offsets == []
            nursery.cancel_scope.cancel()

    run(scene)


def test_an_offset_that_expires_while_it_is_committed_anew_stays() -> None:
    async def scene() -> None:
        here = Serving(now_ms=KEEP_MS + DAY_MS)
        here.save(commit(5))
        told: list[ErrorCode] = []

        async def commit_anew() -> None:
            told.append(await here.service.commit(KEY, [commit(6, here.now_ms)]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit_anew)
            await wait_all_tasks_blocked()  # on its way, and nobody writes yet
            nursery.start_soon(here.service._expire)
            await trio.sleep(SESSION_SECONDS_MAX + 1)
            nursery.start_soon(here.service.run)
            await trio.sleep(SESSION_SECONDS_MAX + 2 * EXPIRY_SECONDS)
            nursery.cancel_scope.cancel()
        assert told == [ErrorCode.NONE] and here.offsets == here.again().offsets == [6]

    run(scene)


def offsets_of(number: int, count: int = 1, metadata: str = "m" * 3000) -> list[Commit]:
    return [Commit(*KEY, "main", number * count + each, 7, -1, metadata, 0) for each in range(count)]


def test_commits_on_their_way_are_counted_until_they_are_written_and_come_again_after_that() -> None:
    """Two thousand at once would hold many times the bound while the disk is slow."""

    async def scene() -> None:
        here = Serving()
        told: dict[int, ErrorCode] = {}
        share = BOUNDS.bytes // 2

        async def commit_one(number: int) -> None:
            told[number] = await here.service.commit(KEY, offsets_of(number))

        async with trio.open_nursery() as nursery:
            for number in range(500):
                nursery.start_soon(commit_one, number)
            await wait_all_tasks_blocked()  # nobody writes yet
            assert set(told.values()) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
            waiting = here.service.offsets.on_the_way
            assert share - 5000 < waiting <= share
            nursery.start_soon(here.service.run)
            await here.written()
            written = [number for number, error in told.items() if error == ErrorCode.NONE]
            assert here.service.offsets.on_the_way == 0 and here.service.offsets.size == waiting
            assert len(here.offsets) == len(written) > 100
            assert await here.service.commit(KEY, offsets_of(written[0])) == ErrorCode.NONE
            nursery.cancel_scope.cancel()

    run(scene)


def test_a_group_that_is_as_large_as_it_may_be_goes_on() -> None:
    async def scene() -> None:
        here = Serving()
        full = offsets_of(0, 130)
        assert here.service.offsets.has_room(KEY, full)
        here.save(*full)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.service.run)
            assert await here.service.commit(KEY, full) == ErrorCode.NONE, "at once, and there is more of it than room"
            more = offsets_of(1, 130)
            assert await here.service.commit(KEY, more) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
            nursery.cancel_scope.cancel()

    run(scene)


def test_who_leaves_while_its_commit_is_on_its_way_is_counted_until_it_is_written() -> None:
    async def scene() -> None:
        here = Serving()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.service.commit, KEY, offsets_of(0))
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert here.service.offsets.on_the_way > 3000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.service.run)
            await here.written()
            assert here.service.offsets.on_the_way == 0 and here.offsets == [7]
            nursery.cancel_scope.cancel()

    run(scene)


def test_many_that_delete_a_group_at_once_hold_nothing_of_it() -> None:
    async def scene() -> None:
        here = Serving()
        here.save(*offsets_of(0, 100))
        made: list[int] = []
        real = here.service.offsets.forgotten

        def forgotten(*arguments: Any) -> Any:
            made.append(1)
            return real(*arguments)

        here.service.offsets.forgotten = forgotten  # type: ignore[method-assign]
        told: list[ErrorCode] = []

        async def delete() -> None:
            told.append(await here.service.forget(KEY))

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(delete)
            await wait_all_tasks_blocked()
            assert not made
            nursery.start_soon(here.service.run)
            await here.written()
            assert told == [ErrorCode.NONE] * 50 and here.offsets == here.again().offsets == []
            nursery.cancel_scope.cancel()

    run(scene)
