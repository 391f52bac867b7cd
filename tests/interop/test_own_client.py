"""rumq.client against rumqd."""

from pathlib import Path
from typing import Any

import pytest
import trio

from rumq.auth.credentials import hashes
from rumq.auth.credentials.files import replace
from rumq.client import Message, NoResponse, Outgoing, Refused, ScramLogin, connect
from rumq.mqtt.reasons import Reason
from tests.broker_process import Address, Rumqd


def run(main: object) -> None:
    async def limited() -> None:
        with trio.fail_after(60):
            await main()  # type: ignore[operator]

    trio.run(limited)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_once_and_in_order(broker: Address, topic: str, version: int, qos: int) -> None:
    async def main() -> None:
        async with (
            connect(*broker, version=version) as subscriber,
            connect(*broker, version=version) as publisher,
        ):
            await subscriber.subscribe(topic, qos=qos)
            sent = [b"%d" % n for n in range(500)]
            await publisher.publish_batch([Outgoing(topic, payload, qos) for payload in sent])
            got: list[bytes] = []
            while len(got) < 500:
                got += [m.payload for m in await subscriber.receive_batch(messages_max=500 - len(got))]
            assert got == sent

    run(main)


def test_who_is_taken_over_is_told(broker: Address, topic: str) -> None:
    async def main() -> None:
        async def first(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            with pytest.raises(Refused, match="0x8E"):
                await hold(task_status)
            taken_over.set()

        async def hold(task_status: trio.TaskStatus[None]) -> None:
            async with connect(*broker, client_id=topic) as client:
                task_status.started()
                await client.receive_batch()

        taken_over = trio.Event()
        async with trio.open_nursery() as nursery:
            await nursery.start(first)
            async with connect(*broker, client_id=topic):
                await taken_over.wait()

    run(main)


def test_a_replay_ends_where_the_log_ended_or_goes_on_live(log_broker: Address, topic: str) -> None:
    async def main() -> None:
        async with connect(*log_broker) as client:
            sent = [b"%d" % n for n in range(300)]
            await client.publish_batch([Outgoing(f"{topic}/{n % 3}", payload, 1) for n, payload in enumerate(sent)])
            records = [record async for record in client.replay(f"{topic}/#")]
            assert [record.payload for record in records] == sent
            assert [record.offset for record in records if record.topic == f"{topic}/1"] == list(range(100))
            lsns = [record.lsn for record in records]
            assert lsns == sorted(set(lsns)) and records[0].partition == "main/g1/p0" and records[0].time is not None
            assert [record async for record in client.replay(f"{topic}/none")] == []
            assert len([record async for record in client.replay(f"{topic}/1", "90")]) == 10
            seen = []
            async for record in client.replay(f"{topic}/1", "90", follow=True):
                seen.append(record.offset)
                if record.offset == 99:
                    await client.publish(f"{topic}/1", b"live", qos=1)
                if record.offset == 100:
                    break
            assert seen == list(range(90, 101))

    run(main)


def test_a_replay_goes_on_when_its_broker_was_killed(own: Rumqd) -> None:
    """Each record once: it begins again, and leaves out what it has given."""

    async def main() -> None:
        async with connect(*own.address, reconnect=True) as client:
            await client.publish_batch([Outgoing(f"a/{n % 5}", b"%d" % n * 100, 1) for n in range(5000)])
            seen = []
            async for record in client.replay("a/#"):
                seen.append(record.lsn)
                if len(seen) == 100:
                    own.kill()
                    own.flags = (*own.flags, "--port", str(own.address.port))
                    await trio.to_thread.run_sync(own.start)
            assert seen == list(range(5000))

    own.start()
    run(main)


def test_requests_are_answered_by_whoever_of_a_group_is_there(broker: Address, topic: str) -> None:
    async def main() -> None:
        async def add(message: Message) -> str:
            return str(sum(map(int, message.payload.split())))

        async with connect(*broker) as one, connect(*broker) as other, connect(*broker) as client:
            async with trio.open_nursery() as nursery:
                for responder in (one, other):
                    await nursery.start(responder.respond, f"$share/sums/{topic}", add)
                found: dict[int, bytes] = {}

                async def ask(number: int) -> None:
                    found[number] = (await client.request(topic, f"1 2 {number}")).payload

                async with trio.open_nursery() as asking:
                    for number in range(50):
                        asking.start_soon(ask, number)
                assert found == {number: b"%d" % (number + 3) for number in range(50)}
                nursery.cancel_scope.cancel()
            with pytest.raises(NoResponse):
                await client.request(topic, "1", 0.5)

    run(main)


def test_a_password_is_proved_and_not_sent(tmp_path: Path) -> None:
    """SCRAM-SHA-256, and once more on the same connection. MQTT 5.0, 4.12"""
    replace(str(tmp_path / "users"), f"ann:{hashes.scram(b'secret', b'salt' * 4, 4096)}\n")
    config = tmp_path / "config.toml"
    config.write_text(f'[auth]\npassword_file = "{tmp_path}/users"\nguess_seconds_max = 0.0\n')
    rumqd = Rumqd(tmp_path / "data", "--config", str(config))

    async def main() -> None:
        async with connect(*rumqd.address, login=ScramLogin("ann", "secret")) as client:
            await client.reauthenticate()
            assert await client.publish("a", b"", qos=1) == Reason.SUCCESS
        with pytest.raises(Refused, match="0x86"):
            async with connect(*rumqd.address, login=ScramLogin("ann", "wrong")):
                pass

    try:
        rumqd.start()
        run(main)
    finally:
        rumqd.end()


def test_a_group_gives_back_what_a_consumer_did_not_acknowledge(broker: Address, topic: str) -> None:
    async def main() -> None:
        manual: dict[str, Any] = {"manual_acknowledge": True, "receive_maximum": 10}
        async with connect(*broker) as publisher, connect(*broker, **manual) as second:
            async with connect(*broker, **manual) as first:
                await first.subscribe(f"$share/g/{topic}", qos=1)
                await publisher.publish_batch([Outgoing(topic, b"%d" % n, 1) for n in range(10)])
                taken: list[Message] = []
                while len(taken) < 10:
                    taken += await first.receive_batch()
                await second.subscribe(f"$share/g/{topic}", qos=1)
                for message in (taken[1], taken[0], taken[2]):
                    first.acknowledge(message)
            got: list[bytes] = []
            while len(got) < 7:
                got += [message.payload for message in await second.receive_batch()]
            assert sorted(got) == [b"%d" % n for n in range(3, 10)]

    run(main)
