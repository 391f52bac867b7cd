"""Bytes that wait for the broker: one call is refused where there is no room, a stream waits for it."""

import asyncio

import pytest

from rumq.services.access.shares import ShareBound, Shares
from rumq.services.access.waiting_bytes import WaitingBytes
from rumq.services.contract.faults import CallFault

A = (("network", "10.0.0.1"),)


def test_who_holds_is_refused_and_who_streams_waits() -> None:
    async def main() -> None:
        waiting = WaitingBytes(Shares(ShareBound("grpc.waiting_bytes_max", "bytes", "TOO_MANY_BYTES", 100)))
        with waiting.hold(40, A):
            with pytest.raises(CallFault, match="TOO_MANY_BYTES"), waiting.hold(40, A):
                pass
            stream = asyncio.ensure_future(waiting.room(40, A))
            for _ in range(3):
                await asyncio.sleep(0)
            assert not stream.done()
        await stream
        waiting.give_back(40, A)
        with waiting.hold(90, A):
            pass

    asyncio.run(main())
