"""Users and listeners of a running broker, with clients that we did not write."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.broker_process import SECONDS_MAX, Rumqd, run_command

SECRET = "in wonderland"


def passwd(*arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rumq", "passwd", *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users"
    assert passwd("-c", str(path), "alice", typed=SECRET + "\n").returncode == 0
    assert passwd("-b", "-H", "sha512-pbkdf2", str(path), "bob", SECRET).returncode == 0
    return path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, users: Path) -> Iterator[Rumqd]:
    folder = tmp_path_factory.mktemp("broker")
    config = folder / "config.toml"
    config.write_text(
        f'[[listener]]\nhost = "127.0.0.1"\nport = 0\npassword_file = "{users}"\n'
        f'[[listener]]\npath = "{folder}/mqtt.sock"\nmaximum_qos = 1\nempty_client_id = false\n'
        'client_id_prefixes = ["pump-"]\n'
        "[auth]\nguess_seconds_max = 0.0\n"
    )
    broker = Rumqd(folder / "data", "--config", str(config))
    broker.start()
    yield broker
    broker.stop()


def answer(
    address: tuple[str, int], user: str | None, password: str | None, version: int = 5, *, path: str = "",
    client_id: str = "pump-1",
) -> str:  # fmt: skip
    """What a client is told in CONNACK."""
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion(version),
        transport="unix" if path else "tcp", reconnect_on_failure=False,
    )  # fmt: skip
    told: list[str] = []
    client.on_connect = lambda _, __, ___, reason, ____: told.append(str(reason))
    if user is not None:
        client.username_pw_set(user, password)
    client.connect(path or address[0], address[1] or 1)
    while not told and client.loop(1.0) == mqtt.MQTT_ERR_SUCCESS:
        pass
    client.disconnect()
    return told[0] if told else "closed"


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("user", "password", "told"),
    [
        ("alice", SECRET, "Success"),
        ("bob", SECRET, "Success"),
        ("alice", "guess", "Bad user name or password"),
        ("nobody", SECRET, "Bad user name or password"),
        (None, None, "Not authorized"),
    ],
)
def test_who_comes_in(broker: Rumqd, version: int, user: str | None, password: str | None, told: str) -> None:
    assert answer(broker.address, user, password, version) == told


def test_refusals_are_told_to_the_operator_without_the_secret(broker: Rumqd) -> None:
    answer(broker.address, "alice", "a guess")
    event = broker.heard(lambda e: e["event"] == "client.refused" and "wrong password" in e["why"])
    assert (event["reason"], event["client_id"]) == (0x86, "pump-1")
    assert "'alice'" in event["why"]
    assert not any("a guess" in str(event) for event in broker.events)


def unix_path(broker: Rumqd) -> str:
    return str(broker.data.parent / "mqtt.sock")


def test_a_unix_socket_has_rules_of_its_own(broker: Rumqd) -> None:
    path = unix_path(broker)
    assert answer(("", 0), None, None, path=path) == "Success"
    assert answer(("", 0), None, None, path=path, client_id="valve-1") == "Not authorized"
    assert answer(("", 0), None, None, path=path, client_id="") == "Client identifier not valid"


def test_a_new_user_comes_in_after_sighup(broker: Rumqd, users: Path) -> None:
    assert answer(broker.address, "carol", SECRET) != "Success"
    assert passwd("-b", "-H", "scram", str(users), "carol", SECRET).returncode == 0
    broker.process.send_signal(signal.SIGHUP)
    broker.event("settings.reloaded")
    assert answer(broker.address, "carol", SECRET) == "Success"


def test_users_can_be_deleted_and_files_with_plain_passwords_hashed(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("dave:plain\nerin:text\n")
    assert "dave" in passwd("-b", str(path), "frank", "x").stderr
    assert passwd("-U", str(path)).returncode == 0
    assert "plain" not in path.read_text()
    assert passwd("-D", str(path), "erin").returncode == 0
    assert [line.partition(":")[0] for line in path.read_text().splitlines()] == ["dave"]


def test_a_file_that_others_can_read_stops_the_start(tmp_path: Path, users: Path) -> None:
    exposed = tmp_path / "users"
    exposed.write_text(users.read_text())
    exposed.chmod(0o644)
    ended = subprocess.run(
        [*run_command("--data", str(tmp_path / "data")), "--set", f"auth.password_file={exposed}"],
        capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "chmod o-rw" in ended.stderr
