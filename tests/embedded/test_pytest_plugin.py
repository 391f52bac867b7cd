"""The fixtures in a project of their own, as pytest runs it: pytester, in processes."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from rumq.embedded import pytest_plugin

pytest_plugins = ["pytester"]
PLUGIN = "rumq.embedded.pytest_plugin"

PAHO = """
import paho.mqtt.client as paho

def publish(broker, topic, payload):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect(broker.host, broker.port)
    client.loop_start()
    client.publish(topic, payload, qos=1).wait_for_publish(30)
    client.disconnect()
    client.loop_stop()
"""


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that sees this tree, whatever is installed."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the entry point, if it is installed, is the same module


def test_it_is_an_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"rumq": PLUGIN}
    assert pytest_plugin.__name__ == PLUGIN


def test_pytest_finds_it_by_itself(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is installed; a clone that was installed before has no entry point yet."""
    if not importlib.metadata.entry_points(group="pytest11", name="rumq"):
        pytest.skip("installed before it had the plugin: pip install -e .")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    pytester.makepyfile("def test_it(rumq_broker): assert rumq_broker.is_running")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_each_test_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        PAHO
        + """
ports = set()

def test_one(rumq_broker):
    publish(rumq_broker, "plant/7/temp", "21.5")
    ports.add(rumq_broker.data)

def test_two(rumq_broker):
    assert rumq_broker.data not in ports
    rumq_broker.kill()
    rumq_broker.restart()
    publish(rumq_broker, "plant/7/temp", "21.5")
"""
    )
    pytester.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=2)


def test_all_tests_share_one_if_they_say_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
found = []

def test_one(rumq_session_broker):
    found.append(rumq_session_broker)

def test_two(rumq_session_broker):
    assert found == [rumq_session_broker] and rumq_session_broker.is_running
"""
    )
    pytester.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=2)


def test_a_test_that_is_a_coroutine_uses_aiomqtt(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import asyncio, aiomqtt

def test_it(rumq_broker):
    async def main():
        async with aiomqtt.Client(rumq_broker.host, rumq_broker.port) as client:
            await client.publish("plant/7/temp", "21.5", qos=1)
            await client.subscribe("$log/earliest/#")
            async for message in client.messages:
                return message.payload

    assert asyncio.run(main()) == b"21.5"
"""
    )
    pytester.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=1)


def test_settings_come_from_a_fixture_and_from_a_marker(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
import pytest

@pytest.fixture(scope="session")
def rumq_settings():
    return {"log.durability": "process"}
"""
    )
    pytester.makepyfile(
        """
import pytest

def test_fixture(rumq_broker):
    assert rumq_broker.settings == {"log": {"durability": "process"}}

@pytest.mark.rumq_broker(mqtt={"outbox_bytes_max": 1048576})
def test_marker(rumq_broker):
    assert rumq_broker.settings == {"log": {"durability": "process"}, "mqtt": {"outbox_bytes_max": 1048576}}

@pytest.mark.rumq_broker({"log.durability": "disk"})
def test_marker_wins(rumq_broker):
    assert rumq_broker.settings == {"log": {"durability": "disk"}}
"""
    )
    pytester.runpytest_subprocess("-p", PLUGIN, "--strict-markers").assert_outcomes(passed=3)


def test_a_project_without_it_pays_nothing(pytester: pytest.Pytester) -> None:
    """Neither the broker nor anything that it needs is imported, and no process is started."""
    pytester.makepyfile(
        """
import os, sys
import psutil

def test_nothing():
    ours = sorted(name for name in sys.modules if name.split(".")[0] in ("rumq", "router", "commitlog", "trio"))
    assert ours == ["rumq", "rumq.embedded", "rumq.embedded.pytest_plugin"]
    assert psutil.Process().children() == []
"""
    )
    pytester.runpytest_subprocess("-p", PLUGIN).assert_outcomes(passed=1)


def test_collecting_starts_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile("def test_it(rumq_broker): pass")
    pytester.makeconftest(
        """
import psutil

def pytest_unconfigure():
    print("children:", len(psutil.Process().children()))
"""
    )
    result = pytester.runpytest_subprocess("-p", PLUGIN, "--collect-only", "-s")
    result.stdout.fnmatch_lines(["*children: 0"])
