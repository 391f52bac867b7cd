"""mosquitto_pub and mosquitto_sub."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest

pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(
        shutil.which("mosquitto_sub") is None, reason="Debian's mosquitto-clients is not installed"
    ),
]


def pub(port: int, *args: str) -> None:
    subprocess.run(["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), *args], check=True, timeout=10)


def sub(port: int, *args: str) -> "subprocess.Popen[str]":
    """A subscriber that is subscribed: its debug output says so."""
    command = ["stdbuf", "-oL", "mosquitto_sub", "-d", "-h", "127.0.0.1", "-p", str(port), "-W", "10", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any("SUBACK" in line for line in process.stdout)
    return process


def lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    assert process.stdout is not None
    return (line.rstrip("\n") for line in process.stdout if not line.startswith("Client "))


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_messages_arrive(port: int, topic: str, version: str, qos: str) -> None:
    listening = sub(port, "-V", version, "-t", f"{topic}/#", "-q", qos, "-C", "3", "-v")
    for n in range(3):
        pub(port, "-V", version, "-t", f"{topic}/x", "-m", str(n), "-q", qos)
    found = [line for line in lines(listening) if line.startswith(topic)]
    assert found == [f"{topic}/x {n}" for n in range(3)]
    listening.wait(10)


def test_a_session_gets_what_came_while_it_was_away(port: int, topic: str) -> None:
    lasting = ["-c", "-i", "mosquitto-lasting", "-q", "1", "-t", topic]
    first = sub(port, *lasting)
    first.kill()
    first.wait(10)
    for n in range(5):
        pub(port, "-t", topic, "-m", str(n), "-q", "1")
    command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-W", "10", "-C", "5", *lasting]
    again = subprocess.run(command, capture_output=True, text=True, timeout=15)
    assert again.stdout.split() == ["0", "1", "2", "3", "4"]


def test_the_will_of_one_that_is_killed_is_published(port: int, topic: str) -> None:
    watcher = sub(port, "-t", topic, "-q", "1", "-C", "1")
    dying = sub(
        port, "-t", f"{topic}/other", "--will-topic", topic, "--will-payload", "gone", "--will-qos", "1"
    )
    dying.kill()
    dying.wait(10)
    assert "gone" in list(lines(watcher))
    watcher.wait(10)


def test_replay_from_the_beginning(port: int, topic: str) -> None:
    for n in range(10):
        pub(port, "-t", topic, "-m", str(n), "-q", "1")
    command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-W", "10", "-C", "10"]
    late = subprocess.run(
        [*command, "-t", f"$log/earliest/{topic}"], capture_output=True, text=True, timeout=15
    )
    assert late.stdout.split() == [str(n) for n in range(10)]
