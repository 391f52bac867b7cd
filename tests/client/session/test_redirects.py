"""Another server, named by the broker: followed, a bounded number of times. MQTT 5.0, 4.11."""

from typing import Any

import pytest
import trio

from rumq.client import ConnectionLost, Reconnect, Refused, connect_over
from rumq.client.session.redirects import ServerPlace, maybe_place
from rumq.mqtt.packets import Connack, Disconnect
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, simulated

ELSEWHERE, MOVED = Reason.USE_ANOTHER_SERVER, Reason.SERVER_MOVED


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("b", ("b", None)), ("b:1884", ("b", 1884)), ("b:1884 c:1885", ("b", 1884)), ("[::1]:1884", ("::1", 1884)),
        ("10.0.0.1:1", ("10.0.0.1", 1)), ("::1", ("::1", None)), ("fe80::1", ("fe80::1", None)),
        ("", None), (" ", None), ("b:0", None), ("b:x", None), ("b:65536", None), (":1883", None), ("a" * 1025, None),
    ],
)  # fmt: skip
def test_a_reference_names_a_place_or_none(reference: str, place: tuple[str, int | None] | None) -> None:
    assert maybe_place(reference) == (ServerPlace(*place) if place else None)


class Servers:
    """Brokers by host; `opened` are the places that were tried."""

    def __init__(self, *hosts: str) -> None:
        self.brokers = {host: FakeBroker() for host in hosts}
        self.opened: list[tuple[str, int | None]] = []

    def open_at(self, host: str, port: int | None) -> Any:
        self.opened.append((host, port))
        return self.brokers[host].open_stream


def directed(reason: Reason, reference: str) -> Connack:
    return Connack(reason=reason, properties=Properties(server_reference=reference))


@simulated
@pytest.mark.parametrize("reason", [ELSEWHERE, MOVED])
async def test_a_refusal_that_names_another_server_is_followed(reason: Reason) -> None:
    """After a loss "use another server" asks the first one again, "server moved" does not."""
    servers = Servers("home", "other")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def client() -> None:
            home = servers.brokers["home"].open_stream
            policy = Reconnect(chance=lambda: 1.0)
            async with connect_over(home, open_at=servers.open_at, reconnect=policy):
                await trio.sleep_forever()

        peer, _ = await servers.brokers["home"].accept(directed(reason, "other:99"))
        assert await peer.gone()
        peer, _ = await servers.brokers["other"].accept()
        assert servers.opened == [("other", 99)]
        await peer.hang_up()
        await servers.brokers["home" if reason == ELSEWHERE else "other"].accept()
        nursery.cancel_scope.cancel()


@simulated
async def test_a_disconnect_that_names_another_server_is_followed() -> None:
    servers = Servers("home", "other")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def client() -> None:
            home = servers.brokers["home"].open_stream
            async with connect_over(home, open_at=servers.open_at, reconnect=True):
                await trio.sleep_forever()

        peer, _ = await servers.brokers["home"].accept()
        await peer.send(Disconnect(ELSEWHERE, Properties(server_reference="other")))
        await servers.brokers["other"].accept()
        nursery.cancel_scope.cancel()


@simulated
@pytest.mark.parametrize(("redirects_max", "tried"), [(3, 4), (1, 2), (0, 1)])
async def test_servers_that_name_each_other_are_left_after_some_hops(redirects_max: int, tried: int) -> None:
    servers = Servers("home")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def broker() -> None:
            while True:
                await servers.brokers["home"].accept(directed(ELSEWHERE, "home"))

        with pytest.raises(Refused, match="0x9C"):
            async with connect_over(
                servers.brokers["home"].open_stream, open_at=servers.open_at, redirects_max=redirects_max
            ):
                pass
        assert len(servers.brokers["home"].tried_at) == tried
        nursery.cancel_scope.cancel()


@simulated
async def test_a_stream_of_the_callers_own_goes_nowhere_else() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.accept, directed(MOVED, "other"))
        with pytest.raises(Refused, match="0x9D"):
            async with connect_over(broker.open_stream):
                pass


@simulated
async def test_a_server_that_is_named_and_away_is_a_lost_connection() -> None:
    servers = Servers("home", "other")
    servers.brokers["other"].is_up = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(servers.brokers["home"].accept, directed(ELSEWHERE, "other"))
        with pytest.raises(ConnectionLost):
            async with connect_over(servers.brokers["home"].open_stream, open_at=servers.open_at):
                pass
