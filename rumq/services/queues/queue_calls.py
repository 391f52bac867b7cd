"""Calls about queues: created, told, listed, deleted, looked into, repaired; and the heartbeat."""

from __future__ import annotations

from collections.abc import Callable

from rumq.queues import NoSuchQueue, Queues
from rumq.queues.rules.names import folded
from rumq.services.calls.call import Call
from rumq.services.contract.faults import CallFault
from rumq.services.contract.requests import PAGE_ROWS_MAX, page_rows, parsed
from rumq.services.generated import queues_pb2 as pb
from rumq.services.queues.audit import QueueAudit
from rumq.services.queues.queue_door import QueueDoor, user_of
from rumq.services.queues.queue_messages import message_of, queue_of, queue_settings

PEEK_USUAL, PEEK_MAX = 20, 1000
REDRIVE_USUAL = 10_000


class QueueCalls:
    """node: its name; now_us: µs since 1970"""

    def __init__(self, door: QueueDoor, audit: QueueAudit, node: str, now_us: Callable[[], int]) -> None:
        self._door, self._audit, self._node, self._now_us = door, audit, node, now_us

    async def create(self, call: Call) -> bytes:
        request = parsed(pb.CreateQueueRequest, await call.request())
        call.caller.check_token_role("administer")
        settings = queue_settings(request.settings)
        info = await self._door.ask(call, lambda queues: queues.create_queue(user_of(call), request.queue, settings))
        self._audit.done(call, "create_queue", label=info.definition.label)
        return pb.CreateQueueResponse(queue=queue_of(info)).SerializeToString()

    async def get(self, call: Call) -> bytes:
        request = parsed(pb.GetQueueRequest, await call.request())
        call.caller.check_token_role("read")
        info = await self._door.ask(call, lambda queues: queues.queue(user_of(call), request.queue))
        return pb.GetQueueResponse(queue=queue_of(info)).SerializeToString()

    async def list(self, call: Call) -> bytes:
        request = parsed(pb.ListQueuesRequest, await call.request())
        call.caller.check_token_role("read")
        count = page_rows(request.page_size)
        after = folded(request.page_token[:PAGE_ROWS_MAX])
        found = await self._door.ask(
            call, lambda queues: queues.queues(user_of(call), request.part[:PAGE_ROWS_MAX], after, count + 1)
        )
        token = found[count - 1].definition.label if len(found) > count else ""
        rows = [queue_of(each) for each in found[:count]]
        return pb.ListQueuesResponse(queues=rows, next_page_token=token).SerializeToString()

    async def delete(self, call: Call) -> bytes:
        request = parsed(pb.DeleteQueueRequest, await call.request())
        call.caller.check_token_role("administer")
        await self._door.ask(call, lambda queues: queues.delete_queue(user_of(call), request.queue))
        self._audit.done(call, "delete_queue", label=folded(request.queue))
        return pb.DeleteQueueResponse().SerializeToString()

    async def rebuild(self, call: Call) -> bytes:
        request = parsed(pb.RebuildQueueRequest, await call.request())
        call.caller.check_token_role("administer")
        found = await self._door.ask(call, lambda queues: queues.rebuild(user_of(call), request.queue))
        rows = [
            pb.QueuePartition(
                stream=each.stream, partition=each.partition, shard=each.shard, durability=each.durability,
                committed_lsn=each.committed_lsn, offline=each.offline or "",
            )
            for each in found.partitions
        ]  # fmt: skip
        return pb.RebuildQueueResponse(
            queue=queue_of(found.queue), partitions=rows, missing=found.missing, was_stale=found.was_stale
        ).SerializeToString()

    async def topics(self, call: Call) -> bytes:
        request = parsed(pb.ListTopicsRequest, await call.request())
        call.caller.check_token_role("read")
        found = await self._door.ask(call, lambda queues: queues.topics(user_of(call), request.queue))
        return pb.ListTopicsResponse(topics=found).SerializeToString()

    # Look and repair

    async def peek(self, call: Call) -> bytes:
        request = parsed(pb.PeekQueueRequest, await call.request())
        call.caller.check_token_role("read")
        count = request.limit or PEEK_USUAL
        if count > PEEK_MAX or request.after_us < 0:
            raise CallFault(
                "ARGUMENT_INVALID",
                f"limit = {count}, after_us = {request.after_us}: a limit is {PEEK_MAX} at most, a time not negative",
                limit=PEEK_MAX,
            )
        found = await self._door.ask(
            call,
            lambda queues: queues.peek(
                user_of(call), request.queue, request.topic or None, after_us=request.after_us, messages_max=count
            ),
        )
        return pb.PeekQueueResponse(messages=[message_of(each) for each in found]).SerializeToString()

    async def purge(self, call: Call) -> bytes:
        request = parsed(pb.PurgeQueueRequest, await call.request())
        call.caller.check_token_role("administer")

        async def purge(queues: Queues) -> int:
            done = 0
            for channel_id in (await queues.queue(user_of(call), request.queue)).channels:
                try:
                    done += await queues.purge(user_of(call), channel_id)
                except NoSuchQueue:
                    pass  # it was deleted meanwhile
            return done

        done = await self._door.ask(call, purge)
        self._audit.done(call, "purge_queue", label=folded(request.queue), done=done)
        return pb.PurgeQueueResponse(messages=done).SerializeToString()

    async def redrive(self, call: Call) -> bytes:
        request = parsed(pb.RedriveQueueRequest, await call.request())
        call.caller.check_token_role("administer")
        count = request.limit or REDRIVE_USUAL
        done = await self._door.ask(call, lambda queues: queues.redrive(user_of(call), request.queue, count))
        self._audit.done(call, "redrive", label=folded(request.queue), done=done)
        return pb.RedriveQueueResponse(messages=done).SerializeToString()

    async def heartbeat(self, call: Call) -> bytes:
        parsed(pb.GetHeartbeatRequest, await call.request())
        why = self._door.state
        return pb.GetHeartbeatResponse(
            node=self._node, time_us=self._now_us(), queues=self._door.count(call), serving=not why, why=why
        ).SerializeToString()
