"""Calls about channels: created, told, listed, deleted, purged."""

from __future__ import annotations

from rumq.queues.rules.names import folded
from rumq.services.calls.call import Call
from rumq.services.contract.requests import PAGE_ROWS_MAX, page_rows, parsed
from rumq.services.generated import queues_pb2 as pb
from rumq.services.queues.audit import QueueAudit
from rumq.services.queues.queue_door import QueueDoor, user_of
from rumq.services.queues.queue_messages import channel_of, channel_settings


class ChannelCalls:
    def __init__(self, door: QueueDoor, audit: QueueAudit) -> None:
        self._door, self._audit = door, audit

    async def create(self, call: Call) -> bytes:
        request = parsed(pb.CreateChannelRequest, await call.request())
        call.caller.check_token_role("consume")
        settings = channel_settings(request.settings)
        info = await self._door.ask(
            call,
            lambda queues: queues.create_channel(
                user_of(call), request.queue, request.topic or None, settings, request.id or None
            ),
        )
        self._audit.done(call, "create_channel", id=info.definition.channel_id, label=info.definition.label)
        return pb.CreateChannelResponse(channel=channel_of(info)).SerializeToString()

    async def get(self, call: Call) -> bytes:
        request = parsed(pb.GetChannelRequest, await call.request())
        call.caller.check_token_role("read")
        info = await self._door.ask(call, lambda queues: queues.channel(user_of(call), request.channel))
        return pb.GetChannelResponse(channel=channel_of(info)).SerializeToString()

    async def list(self, call: Call) -> bytes:
        request = parsed(pb.ListChannelsRequest, await call.request())
        call.caller.check_token_role("read")
        count = page_rows(request.page_size)
        after = folded(request.page_token[:PAGE_ROWS_MAX])
        found = await self._door.ask(
            call, lambda queues: queues.channels(user_of(call), request.queue or None, after, count + 1)
        )
        token = found[count - 1].definition.channel_id if len(found) > count else ""
        rows = [channel_of(each) for each in found[:count]]
        return pb.ListChannelsResponse(channels=rows, next_page_token=token).SerializeToString()

    async def delete(self, call: Call) -> bytes:
        request = parsed(pb.DeleteChannelRequest, await call.request())
        call.caller.check_token_role("consume")
        await self._door.ask(call, lambda queues: queues.delete_channel(user_of(call), request.channel))
        self._audit.done(call, "delete_channel", id=folded(request.channel))
        return pb.DeleteChannelResponse().SerializeToString()

    async def purge(self, call: Call) -> bytes:
        request = parsed(pb.PurgeChannelRequest, await call.request())
        call.caller.check_token_role("administer")
        done = await self._door.ask(call, lambda queues: queues.purge(user_of(call), request.channel))
        self._audit.done(call, "purge_channel", id=folded(request.channel), done=done)
        return pb.PurgeChannelResponse(messages=done).SerializeToString()
