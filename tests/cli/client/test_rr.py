"""`rumqd rr`: a request and its response, as a process."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from rumq.client import Message, connect
from tests.cli.conftest import Broker, Ended, rumqd


def asked(broker: Broker, handler: Callable[[Message], Awaitable[str]], *arguments: str) -> Ended:
    """What the command says while somebody answers."""

    async def main() -> Ended:
        async with connect("127.0.0.1", int(broker.port)) as client, trio.open_nursery() as nursery:
            await nursery.start(client.respond, "rr/#", handler)
            ended = await trio.to_thread.run_sync(lambda: rumqd("rr", "-h", "127.0.0.1", "-p", broker.port, *arguments))
            nursery.cancel_scope.cancel()
        return ended

    return trio.run(main)


async def told(message: Message) -> str:
    """The request again, with where the response goes."""
    pairs = message.properties.get("user_properties", [])
    return f"{message.topic} {message.payload.decode()} {message.response_topic} {pairs}"


def test_the_response_is_printed(broker: Broker) -> None:
    ended = asked(broker, told, "rr/1", "-m", "2 3", "-e", "answers/desk", "--user-property", "a=b")
    assert ended == Ended(0, "rr/1 2 3 answers/desk [('a', 'b')]\n", "")


def test_the_response_topic_is_its_own_by_default(broker: Broker) -> None:
    ended = asked(broker, told, "-t", "rr/1", "-n", "-i", "desk", "-F", "%t %p")
    assert ended.out == "rumq/response/desk rr/1  rumq/response/desk []\n"


def test_no_response_is_an_error(broker: Broker) -> None:
    ended = rumqd("rr", "-h", "127.0.0.1", "-p", broker.port, "nobody", "-m", "", "-W", "1")
    assert ended == Ended(1, "", "rumqd: no response to a request to nobody: nothing came within 1 s\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-m", "x"), "expected a topic"),
        (("a", "-m", "x", "-V", "3.1.1"), "requests need MQTT 5"),
        (("a/#", "-m", "x"), "wildcard"),
        (("a", "-m", "x", "-e", "b/+"), "wildcard"),
        (("a", "-m", "x", "--user-property", "b"), "name=value"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], why: str) -> None:
    ended = rumqd("rr", *arguments)
    assert (ended.status, why in ended.err) == (2, True), ended.err
