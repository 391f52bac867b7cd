"""New connections of the gateway's port: at most so many a second, each address in turn."""

from types import SimpleNamespace
from typing import Any

import trio
from trio.testing import MockClock

from rumq.gateway.http.http_connection import HttpPeer
from rumq.gateway.http.new_connections import AcceptedConnection, NewConnections


def test_an_address_that_floods_delays_another_by_one_turn() -> None:
    """A6, D19: 300 at once of one address, at 10 a second; whoever comes then is the next but one."""
    served: list[tuple[str, float]] = []
    told: list[dict[str, Any]] = []
    closed: list[int] = []

    def socket_of(number: int) -> Any:
        return SimpleNamespace(setsockopt=lambda *_: None, close=lambda: closed.append(number))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            began = trio.current_time()

            def serve(arrival: AcceptedConnection) -> None:
                served.append((arrival.peer.host, trio.current_time() - began))

            new = NewConnections(10, serve, lambda name, **fields: told.append({"event": name, **fields}))
            nursery.start_soon(new.run)
            for number in range(300):
                new.came(AcceptedConnection(socket_of(number), HttpPeer("2001:db8::1", number)))
            new.came(AcceptedConnection(socket_of(-1), HttpPeer("10.0.0.7", 1)))
            await trio.sleep(1.01)
            assert new.counts.delayed == 291 and new.counts.refused == 271
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert [host for host, _ in served[:12]] == ["2001:db8::1"] * 11 + ["10.0.0.7"]
    assert served[11][1] < 0.25 and len(served) == 20
    assert len(closed) == 271 + 10 and -1 not in closed
    assert told[0] == {
        "event": "listener.rate_reached", "listener": "gateway", "address": "2001:db8::/64", "per_second": 10,
        "delayed": 1, "refused": 0,
    }  # fmt: skip
