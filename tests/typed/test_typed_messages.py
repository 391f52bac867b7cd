"""Values through a broker: what fits arrives as its type, what does not is reported and ends nothing."""

import logging

import msgspec
import pytest
import trio

import rumq
from rumq import typed
from rumq.client import Client, Properties


class Temperature(msgspec.Struct):
    celsius: float


class Alarm(msgspec.Struct):
    text: str


TEMPERATURES = typed.Topic("plant/{pump}/temperature", Temperature)
PACKED = typed.Topic("plant/{pump}/temperature", Temperature, encoding="msgpack")
ALARMS = typed.Topic("plant/{pump}/alarm", Alarm)


async def publish_some(client: Client) -> None:
    await typed.publish(client, TEMPERATURES, Temperature(1.0), qos=1, pump=7)
    await client.publish("plant/7/temperature", b"warm", qos=1)
    await typed.publish(client, PACKED, Temperature(2.0), qos=1, pump=7)
    await client.publish("plant/7/temperature", b'{"celsius": 3}', qos=1)  # of a device that knows no content type
    png = Properties(content_type="image/png")
    await client.publish("plant/7/temperature", b"\x89PNG", qos=1, properties=png)
    await typed.publish(client, ALARMS, Alarm("hot"), qos=1, pump=7)


async def received(client: Client, *topics: typed.Topic[object], **more: object) -> list[typed.TypedMessage[object]]:
    """Up to the alarm."""
    found: list[typed.TypedMessage[object]] = []
    async for each in typed.messages(client, *topics, **more):  # type: ignore[arg-type]
        found.append(each)
        if isinstance(each.value, Alarm):
            break
    return found


@pytest.mark.parametrize("from_", ["earliest", "latest"])
def test_values_arrive_and_what_does_not_fit_is_reported(from_: str) -> None:
    faults: list[typed.PayloadMismatch] = []

    async def main() -> list[typed.TypedMessage[object]]:
        async with rumq.broker() as broker, broker.client() as client:
            if from_ == "earliest":
                await publish_some(client)
            await typed.subscribe(client, TEMPERATURES, ALARMS, qos=1, from_=from_)
            if from_ == "latest":
                await publish_some(client)
            return await received(client, TEMPERATURES, ALARMS, mismatched=faults.append)  # type: ignore[arg-type]

    found = trio.run(main)
    values = [each.value for each in found]
    assert [value for value in values if isinstance(value, Temperature)] == [
        Temperature(1.0), Temperature(2.0), Temperature(3.0),
    ]  # fmt: skip
    assert values[-1] == Alarm("hot") and found[0].names == {"pump": "7"} and found[0].message.offset == 0
    assert [(fault.topic, fault.offset) for fault in faults] == [("plant/7/temperature", 1), ("plant/7/temperature", 4)]
    assert "image/png" in faults[1].problem


def test_unless_told_otherwise_it_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with rumq.broker() as broker, broker.client() as client:
            await publish_some(client)
            await typed.publish(client, ALARMS, Alarm("hot"), qos=1, pump=7)
            await client.subscribe("#", from_="earliest")
            await received(client, ALARMS)  # type: ignore[arg-type]

    with caplog.at_level(logging.WARNING, "rumq.typed"):
        trio.run(main)
    assert len(caplog.messages) == 5
    assert caplog.messages[0].startswith("topic plant/7/temperature at offset 0: its name is of no pattern")


def test_a_client_of_3_1_1_has_the_encoding_of_the_topic() -> None:
    async def main() -> object:
        async with rumq.broker() as broker, broker.client(version=4) as client:
            await typed.publish(client, PACKED, Temperature(2.0), qos=1, pump=7)
            await typed.subscribe(client, PACKED, from_="earliest")
            async for each in typed.messages(client, PACKED):
                return each.value
        return None

    assert trio.run(main) == Temperature(2.0)
