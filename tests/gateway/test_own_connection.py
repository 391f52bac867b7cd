"""The connection on which the gateway publishes for a user is its own: no client takes its session or its share."""

from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from rumq.auth.credentials.vouched import OWN_PASSWORD, Vouched
from rumq.auth.identity import GATEWAYS_OWN, Credentials, Identity
from rumq.client.connector import connect_over
from rumq.client.transport.websocket import open_websocket
from rumq.errors import Refused
from rumq.gateway.relay.login import for_broker
from rumq.mqtt.connect import decode_connect
from rumq.mqtt.packets import Connect
from rumq.session.state.session_owner import key_of, owner_of
from tests.gateway.conftest import Gateway, started


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(
        tmp_path_factory.mktemp("own"), "auth.user_connections_max=1", "auth.user_messages_per_second_max=50",
        "auth.guess_seconds_max=0",
    )  # fmt: skip
    yield made
    made.broker.end()


@asynccontextmanager
async def connected(gateway: Gateway, token: str, client_id: str) -> Any:
    async def opened() -> trio.abc.Stream:
        stream = await trio.open_tcp_stream("127.0.0.1", gateway.port)
        return await open_websocket(stream, f"127.0.0.1:{gateway.port}", "/mqtt")

    async with connect_over(opened, client_id=client_id, password=gateway.secrets[token], username="x") as client:
        yield client


def own_ids(gateway: Gateway, user: str | None) -> set[str]:
    rows = gateway.get("clients?client=rumq-gateway-*")["clients"]
    return {row["client_id"] for row in rows if row["user"] == user and row["connected"]}


@pytest.mark.parametrize(("token", "user"), [("anna", "anna"), ("ops", None)])
def test_a_client_with_its_id_and_its_user_has_another_session(gateway: Gateway, token: str, user: str | None) -> None:
    assert gateway.publish({"topic": "t"}, token=token).status == 200
    (client_id,) = own_ids(gateway, user)

    async def body() -> None:
        with trio.fail_after(60):
            async with connected(gateway, token, client_id) as client:
                for _ in range(5):
                    publish = partial(gateway.publish, {"topic": "t"}, token=token)
                    assert (await trio.to_thread.run_sync(publish)).status == 200
                await client.publish("t", b"its own", qos=1)

    trio.run(body)
    assert not gateway.broker.named("client.taken_over")


def test_clients_of_the_user_do_not_take_its_share_of_connections(gateway: Gateway) -> None:
    """One connection of a user is allowed: the client has it, and the gateway publishes all the same."""

    async def body() -> None:
        with trio.fail_after(60):
            async with connected(gateway, "anna", "desk"):
                publish = partial(gateway.publish, *[{"topic": "t"}] * 3, token="anna")
                assert (await trio.to_thread.run_sync(publish)).json["accepted"] == 3

    trio.run(body)


def test_the_id_cannot_be_foreseen(gateway: Gateway) -> None:
    gateway.publish({"topic": "t"}, token="anna")
    (before,) = own_ids(gateway, "anna")
    gateway.act("disconnect", client=before)
    while gateway.publish({"topic": "t"}, token="anna").status != 200:
        pass
    (after,) = own_ids(gateway, "anna")
    assert before != after and len(after.rpartition("-")[2]) == 16


def test_only_the_gateway_s_own_password_makes_a_connection_its_own() -> None:
    def identity(**credentials: Any) -> Identity | None:
        try:
            next(Vouched().check(Credentials("c", **credentials)))
        except StopIteration as end:
            found: Identity | None = end.value
            return found
        raise AssertionError

    anna, own = identity(username="anna"), identity(username="anna", password=OWN_PASSWORD)
    assert anna is not None and own is not None and own.method == GATEWAYS_OWN != anna.method
    assert own.user == anna.user == "anna" and own.quota_holder != anna.quota_holder == "anna"
    assert key_of("c", owner_of(own, "")) != key_of("c", owner_of(anna, ""))
    nobody = identity(password=OWN_PASSWORD)
    assert nobody is not None and nobody.user is None and nobody.quota_holder is None
    assert key_of("c", owner_of(nobody, "")) != "c" and identity() is None


def test_a_client_cannot_say_that_it_is_the_gateway(gateway: Gateway) -> None:
    """The relay takes the password as a token, which this one is not, and sends none to the broker."""
    gateway.secrets["own"] = OWN_PASSWORD.decode()

    async def body() -> None:
        with trio.fail_after(60):
            async with connected(gateway, "own", "x"):
                raise AssertionError

    with pytest.raises(Refused):
        trio.run(body)
    packet = decode_connect(0x10, for_broker(Connect("c", 5, password=OWN_PASSWORD), "anna")[2:])
    assert (packet.username, packet.password) == ("anna", None)
