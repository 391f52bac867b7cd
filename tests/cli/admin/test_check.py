"""`rumqd check`: says before a start what would keep a broker from it, in the words of `rumqd run`."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rumq.process.broker.start_check import in_use
from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock.getsockname()[1]


def checked(tmp_path: Path, config: str, *flags: str) -> tuple[int, str, str]:
    (tmp_path / "config.toml").write_text(config)
    return rumqd("check", "--config", "config.toml", "--port", "0", *flags, cwd=tmp_path)


def refusals(tmp_path: Path, *flags: str) -> str:
    """What `rumqd run` refuses to start with."""
    done = rumqd("run", "--config", "config.toml", *flags, cwd=tmp_path)
    assert done.status
    return "\n".join(line for line in done.err.splitlines() if line.startswith("rumqd:"))


def test_good_settings_are_good_and_nothing_is_made(tmp_path: Path) -> None:
    status, out, err = checked(tmp_path, "")
    assert (status, err) == (0, "") and "a broker can start" in out
    assert os.listdir(tmp_path) == ["config.toml"]


@pytest.mark.parametrize(
    "config",
    [
        "nonsense = 1",
        '[auth]\npassword_file = "nowhere"',
        '[auth]\nrules_file = "nowhere.toml"',
        '[listener]\ntls_certificate = "nowhere.pem"',
        '[auth]\npassword_file = "open"',  # that others can read
        '[cluster]\nnode = "n1"',
    ],
)
def test_what_is_wrong_with_settings_and_files_is_said_as_by_run(tmp_path: Path, config: str) -> None:
    (tmp_path / "open").write_text("")
    (tmp_path / "open").chmod(0o644)
    status, _, err = checked(tmp_path, config)
    assert status == 2 and err.strip()
    assert err.strip() == refusals(tmp_path, "--port", "0")


def test_an_address_that_is_in_use_is_said_as_by_run(tmp_path: Path, taken: int) -> None:
    status, _, err = checked(tmp_path, "", "--host", "127.0.0.1", "--port", str(taken))
    assert status == 2
    assert err.strip() == refusals(tmp_path, "--host", "127.0.0.1", "--port", str(taken))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path, taken: int) -> None:
    (tmp_path / "file").write_text("")
    config = f'[flight]\nport = {taken}\nhost = "127.0.0.1"\n[auth]\nrules_file = "nowhere.toml"'
    status, _, err = checked(tmp_path, config, "--data", "file")
    assert status == 2
    assert f":{taken}" in err and "nowhere.toml" in err and "data directory file" in err


def test_ports_for_other_nodes_are_tried_too(tmp_path: Path, taken: int) -> None:
    config = (
        f'[cluster]\nname = "c"\nnode = "n"\nreplicas = 1\nhost = "127.0.0.1"\nport = {taken - 2}\n'
        'etcd_authority = "nowhere.pem"\n'
    )
    status, _, err = checked(tmp_path, config)
    assert status == 2 and f"127.0.0.1:{taken}" in err and 'cluster.etcd_authority = "nowhere.pem"' in err


def test_a_unix_socket_of_another_process_is_seen_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        sock.listen()
        status, _, err = checked(tmp_path, "", "--set", f"listener.path={path}")
        assert status == 2 and "cannot listen on" in err
    assert checked(tmp_path, "", "--set", f"listener.path={path}")[0] == 0, "nobody listens there any more"
    assert path.exists()
    status, _, err = checked(tmp_path, "", "--set", f"listener.path={tmp_path}/no/s")
    assert status == 2 and "No such file" in err


def test_a_data_directory_of_a_later_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rumq-data").mkdir()
    (tmp_path / "rumq-data/FORMAT").write_text("rumq 99\n")
    status, _, err = checked(tmp_path, "")
    assert status == 2 and err.strip() == refusals(tmp_path, "--port", "0")


def test_a_broker_may_run_and_is_left_alone(tmp_path: Path) -> None:
    broker = Rumqd(tmp_path / "data")
    broker.start()
    try:
        assert in_use(str(tmp_path / "data"))
        status, out, _ = checked(
            tmp_path, "", "--data", "data", "--host", "127.0.0.1", "--port", str(broker.address.port)
        )
        assert status == 0 and "a broker runs" in out
    finally:
        broker.end()
    assert not in_use(str(tmp_path / "data"))
