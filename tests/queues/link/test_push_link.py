"""One connection for pushes: a queue that pushes a flood holds up no other, and answers go to their batches."""

from __future__ import annotations

import trio
from trio.testing import memory_stream_pair

from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Connack, Puback, Publish
from rumq.mqtt.reasons import Reason
from rumq.queues.kernels.push_frames import PushFrames
from rumq.queues.link.push_batches import PushBatch
from rumq.queues.link.push_link import IN_FLIGHT_MAX, PushLink

FLOOD = 30_000


def batch(lane: str, count: int, notes: list[tuple[str, int, int]] | None = None) -> PushBatch:
    frames = PushFrames()
    for _ in range(count):
        frames.add(0x32, b"\0\1" + lane.encode(), b"\0", b"x" * 64)

    def acknowledged(batch: PushBatch, first: int, stop: int) -> None:
        if notes is not None:
            notes.append((batch.lane, first, stop))

    return PushBatch(frames, acknowledged, lane)


class Broker:
    """Accepts the connection, and answers as many messages as it is told to."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream, self._frames = stream, FrameReader(version=5)
        self.received: list[Publish] = []
        self.answered = 0

    async def begin(self) -> None:
        while not [*self._frames.frames()]:
            self._frames.receive(bytes(await self._stream.receive_some(1 << 16)))
        await self._stream.send_all(encode(Connack(False, Reason.SUCCESS), 5))

    async def receive(self, until: int) -> None:
        """Until so many came."""
        while len(self.received) < until:
            self._frames.receive(bytes(await self._stream.receive_some(1 << 20)))
            for first, body in self._frames.frames():
                packet = decode(first, body, 5)
                assert isinstance(packet, Publish)
                self.received.append(packet)

    async def answer(self, until: int, reason: Reason = Reason.SUCCESS) -> None:
        some = self.received[self.answered : until]
        self.answered = until
        await self._stream.send_all(b"".join(encode(Puback(each.packet_id or 0, reason), 5) for each in some))


async def linked(nursery: trio.Nursery) -> tuple[PushLink, Broker]:
    ours, theirs = memory_stream_pair()
    link, broker = PushLink("queues-test", None, b""), Broker(theirs)

    async def open_stream() -> trio.abc.Stream:
        return ours

    nursery.start_soon(link.run, open_stream)
    await broker.begin()
    await link.ready.wait()
    return link, broker


def test_a_flood_of_one_queue_delays_a_message_of_another_by_what_is_in_flight_at_most() -> None:
    async def story() -> None:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                link, broker = await linked(nursery)
                flood = [batch("g", FLOOD) for _ in range(3)]
                for each in flood:
                    link.put(each)
                await broker.receive(IN_FLIGHT_MAX)
                await trio.testing.wait_all_tasks_blocked()
                assert len(broker.received) == IN_FLIGHT_MAX
                modest = batch("m", 1)
                link.put(modest)
                await broker.answer(IN_FLIGHT_MAX)
                await broker.receive(IN_FLIGHT_MAX + 1000)
                place = [each.topic for each in broker.received].index("m")
                assert place - IN_FLIGHT_MAX < 1000  # of a flood of 90,000
                await broker.answer(place + 1)
                await modest.done.wait()
                assert not flood[0].done.is_set()
                nursery.cancel_scope.cancel()
        assert all(each.fault is not None for each in flood) and modest.fault is None

    trio.run(story)


def test_answers_go_to_their_batches_in_runs_and_refusals_one_by_one() -> None:
    async def story() -> None:
        notes: list[tuple[str, int, int]] = []
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                link, broker = await linked(nursery)
                batches = [batch("a", 3, notes), batch("b", 2, notes)]
                for each in batches:
                    link.put(each)
                await broker.receive(5)
                await broker.answer(2)
                await broker.answer(3, Reason.QUOTA_EXCEEDED)
                await broker.answer(5)
                for each in batches:
                    await each.done.wait()
                nursery.cancel_scope.cancel()
        found = [(lane, number) for lane, first, stop in notes for number in range(first, stop)]
        assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
        assert batches[0].refused == {2: (Reason.QUOTA_EXCEEDED, "")} and not batches[1].refused

    trio.run(story)


def test_an_answer_that_is_not_the_next_one_ends_the_connection() -> None:
    async def story() -> None:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                link, broker = await linked(nursery)
                pushed = batch("a", 3)
                link.put(pushed)
                await broker.receive(3)
                broker.received.reverse()
                await broker.answer(1)
                await pushed.done.wait()
        assert pushed.fault is not None and "is not the next one" in str(pushed.fault)

    trio.run(story)
