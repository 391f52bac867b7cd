"""`rumq.broker()`: a whole broker for as long as a block runs, under every kind of loop, and nothing behind it."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import aiomqtt
import paho.mqtt.client as paho
import psutil
import pytest
import trio

import rumq
from rumq.embedded import template
from rumq.embedded.broker import BrokerFailed
from rumq.errors import ConfigError, DataDirectoryError

SECONDS_MAX = 60.0


def paho_client(broker: rumq.embedded.broker.EmbeddedBroker) -> paho.Client:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.connect(broker.host, broker.port)
    client.loop_start()
    return client


def published(client: paho.Client, topic: str, payload: str) -> None:
    client.publish(topic, payload, qos=1).wait_for_publish(SECONDS_MAX)


def received(client: paho.Client, topic_filter: str) -> str:
    """The first message of a subscription."""
    arrived, payloads = threading.Event(), []

    def on_message(_: object, __: object, message: paho.MQTTMessage) -> None:
        payloads.append(message.payload.decode())
        arrived.set()

    client.on_message = on_message
    client.subscribe(topic_filter, qos=1)
    assert arrived.wait(SECONDS_MAX)
    return str(payloads[0])


def test_plain_code_has_a_broker_for_a_block() -> None:
    with rumq.broker() as broker:
        client = paho_client(broker)
        published(client, "plant/7/temp", "21.5")
        assert received(client, "$log/earliest/plant/#") == "21.5"
        client.disconnect()
        client.loop_stop()
        directory = broker.data.parent
        assert broker.is_running and broker.data.is_dir() and broker.url == f"mqtt://127.0.0.1:{broker.port}"
    assert not directory.exists() and not broker.is_running


def test_a_task_of_trio_has_one() -> None:
    async def main() -> bytes:
        async with rumq.broker() as broker, broker.client() as client:
            await client.publish("plant/7/temp", b"21.5", qos=1)
            await client.subscribe("plant/#", from_="earliest")
            async for message in client.messages():
                return message.payload
        return b""

    assert trio.run(main) == b"21.5"


@pytest.mark.parametrize("plain", [True, False])
def test_a_task_of_asyncio_has_one(plain: bool) -> None:
    async def talk(broker: rumq.embedded.broker.EmbeddedBroker) -> object:
        async with aiomqtt.Client(broker.host, broker.port) as client:
            await client.publish("plant/7/temp", "21.5", qos=1)
            await client.subscribe("$log/earliest/plant/#")
            async for message in client.messages:
                return message.payload
        return None

    async def main() -> object:
        if plain:
            with rumq.broker() as broker:
                return await talk(broker)
        async with rumq.broker() as broker:
            return await talk(broker)

    assert asyncio.run(main()) == b"21.5"


def test_several_at_once_know_nothing_of_each_other() -> None:
    with rumq.broker() as one, rumq.broker() as other:
        assert one.port != other.port and one.data != other.data
        one.kill()
        assert not one.is_running and other.is_running


def test_settings_are_those_of_config_toml(tmp_path: Path) -> None:
    stream = {"name": "plant", "filters": ["plant/#"], "partitions": 2}
    with rumq.broker({"log.durability": "process"}, stream=[stream], data=tmp_path / "log") as broker:
        assert broker.data == tmp_path / "log"
        assert sorted(path.name for path in (broker.data / "plant" / "g1").iterdir()) == ["p0", "p1"]
    assert (tmp_path / "log").is_dir(), "a directory that was given is kept"


def test_the_environment_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMQ_LISTENER_PORT", "no number")
    with rumq.broker() as broker:
        assert broker.is_running


def test_every_fault_of_the_settings_is_named() -> None:
    with pytest.raises(ConfigError) as raised, rumq.broker(log={"durabilty": "disk"}, mqtt={"qos_max": 1}):
        raise AssertionError("it started")
    assert [fault.key for fault in raised.value.faults] == ["log.durabilty", "mqtt.qos_max"]
    assert "did you mean log.durability" in str(raised.value)


def test_a_directory_that_another_broker_holds_is_refused(tmp_path: Path) -> None:
    with rumq.broker(data=tmp_path), pytest.raises(DataDirectoryError), rumq.broker(data=tmp_path):
        raise AssertionError("it started")


def test_an_address_that_is_taken_is_named() -> None:
    with (
        rumq.broker() as broker,
        pytest.raises(BrokerFailed, match=str(broker.port)),
        rumq.broker(listener={"port": broker.port}),
    ):
        raise AssertionError("it started")


def test_what_was_acknowledged_is_there_after_a_kill() -> None:
    with rumq.broker() as broker:
        client, port = paho_client(broker), broker.port
        published(client, "plant/7/temp", "21.5")
        client.disconnect()
        broker.kill()
        broker.restart()
        assert (broker.port, len(broker.events("broker.ready"))) == (port, 2)
        assert received(paho_client(broker), "$log/earliest/plant/#") == "21.5"


def test_a_task_kills_and_restarts_it_too() -> None:
    async def main() -> None:
        async with rumq.broker() as broker:
            await broker.kill()
            assert not broker.is_running
            await broker.restart()
            await broker.restart()  # one that runs is stopped first
            assert broker.is_running and len(broker.events("broker.stopped")) == 1

    trio.run(main)


@pytest.mark.parametrize("shards", [1, 2])
def test_a_kill_ends_all_its_processes(shards: int) -> None:
    with rumq.broker(shards={"count": shards}) as broker:
        pid = broker.events("broker.starting")[0]["pid"]
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        assert len(processes) == (1 if shards == 1 else 1 + shards)
        broker.kill()
        assert not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_a_kill_ends_what_has_left_its_session(tmp_path: Path) -> None:
    """A function's worker has one of its own, and is not the broker's child."""
    (tmp_path / "f.py").write_text("def transform(batch): return batch")
    own = {"name": "f", "filters": ["a/#"], "code": str(tmp_path / "f.py"), "prefix": "b/"}
    with rumq.broker(function=[own]) as broker:
        client = paho_client(broker)
        published(client, "a/1", "x")
        received(client, "$log/earliest/b/#")
        client.loop_stop()
        processes = psutil.Process(broker.events("broker.starting")[0]["pid"]).children(recursive=True)
        assert len(processes) == 2, "the process of functions and a worker"
        broker.kill()
        assert not [each for each in processes if each.is_running()]


def test_an_error_of_the_block_leaves_nothing() -> None:
    try:
        with rumq.broker() as broker:
            pid = broker.events("broker.starting")[0]["pid"]
            raise KeyError("of the test")
    except KeyError:
        pass
    assert not psutil.pid_exists(pid) and not broker.data.exists()


def test_a_cancelled_task_leaves_nothing() -> None:
    async def main() -> rumq.embedded.broker.AsyncBroker:
        with trio.CancelScope() as scope:
            async with rumq.broker() as broker:
                scope.cancel()
                await trio.sleep_forever()
        return broker

    broker = trio.run(main)
    assert not broker.data.parent.exists() and not broker.is_running


def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template.close()
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    async def main() -> bool:
        with trio.CancelScope() as scope:
            scope.cancel()
            async with rumq.broker():
                raise AssertionError("it is cancelled while it waits")
        return scope.cancelled_caught

    assert trio.run(main)
    assert list(tmp_path.iterdir()) == []
    template.close()


PROGRAM = """
import signal, sys, rumq
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has those in the background ignore it
with rumq.broker(shards={"count": 2}) as broker:
    starting = broker.events("broker.starting")[0]
    print(starting["pid"], broker.data.parent, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_that_is_killed_leaves_nothing(number: int, tmp_path: Path) -> None:
    """Neither processes nor files, whatever ends the program."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert program.stdin is not None and program.stdout is not None
    pid, directory = program.stdout.readline().split()
    processes = psutil.Process(program.pid).children(recursive=True)
    assert len(processes) == 4 and int(pid) in [each.pid for each in processes], (
        "template and a broker: its supervisor and two shards"
    )
    assert Path(directory).parent == tmp_path
    program.send_signal(number)
    program.wait(SECONDS_MAX)
    gone, alive = psutil.wait_procs(processes, SECONDS_MAX)
    assert len(gone) == 4 and not alive
    assert list(tmp_path.iterdir()) == []
    program.stdin.close()
    program.stdout.close()


def test_a_template_that_is_killed_takes_its_brokers_along_and_is_replaced() -> None:
    with rumq.broker() as broker:
        pid = broker.events("broker.starting")[0]["pid"]
        killed = psutil.Process(pid).parent()
        assert killed is not None
        killed.kill()
        psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], SECONDS_MAX)
        with pytest.raises(BrokerFailed):
            broker.restart()
        with rumq.broker() as other:
            assert other.is_running
    assert not broker.data.parent.exists()


def test_a_block_has_no_thread_and_no_descriptor_left() -> None:
    with rumq.broker():
        pass
    threads, descriptors = threading.active_count(), set(os.listdir("/proc/self/fd"))
    with rumq.broker():
        assert threading.active_count() == threads
    assert set(os.listdir("/proc/self/fd")) == descriptors


def test_a_forked_copy_of_the_program_has_brokers_of_its_own() -> None:
    with rumq.broker() as broker:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with rumq.broker() as other:
                    status = int(other.port == broker.port)
                template.close()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert broker.is_running


def test_a_broker_whose_block_has_ended_says_so() -> None:
    with rumq.broker() as broker:
        pass
    with pytest.raises(BrokerFailed, match="block"):
        broker.restart()
