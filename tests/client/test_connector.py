"""What `connect` makes of hosts and URLs: where it connects, and which gateway it asks for queues."""

import pytest
import trio

from rumq.client import connect
from rumq.client.connector import address_of, gateway_urls, tls_context
from rumq.client.transport.address import BrokerAddress


def test_ports_are_those_of_the_url_or_the_standard() -> None:
    assert address_of("broker", None, is_tls=False) == BrokerAddress("broker", 1883, "mqtt")
    assert address_of("broker", None, is_tls=True).port == 8883
    assert address_of("mqtts://broker", None, is_tls=False).port == 8883
    assert address_of("ws://broker:8080/mqtt", 81, is_tls=False).port == 81


@pytest.mark.parametrize(
    ("hosts", "gateway", "urls"),
    [
        (["broker"], None, ()),
        (["ws://a:8080/mqtt", "wss://[::1]:8443/mqtt", "c"], None, ("http://a:8080", "https://[::1]:8443")),
        (["ws://a:8080/mqtt"], "http://b", ("http://b",)),
        (["a"], ["http://b", "http://c"], ("http://b", "http://c")),
    ],
)
def test_a_client_that_comes_by_the_gateways_websocket_knows_it(
    hosts: list[str], gateway: str | list[str] | None, urls: tuple[str, ...]
) -> None:
    assert gateway_urls(gateway, [address_of(each, None, is_tls=False) for each in hosts]) == urls


def test_no_host_and_tls_that_is_refused_are_said() -> None:
    async def nobody() -> None:
        async with connect([]):
            pass

    with pytest.raises(ValueError, match="list of hosts is empty"):
        trio.run(nobody)
    with pytest.raises(ValueError, match="requires TLS"):
        tls_context(False, [address_of("mqtts://a", None, is_tls=False)])
