"""`rumqd certs dev`: certificates with which a TLS handshake works, and keys that nobody else reads."""

import os
import shlex
import ssl
import stat
from pathlib import Path

import pytest

from rumq.cli.main import main
from rumq.net.tls_options import TlsOptions, make_context


def handshake(folder: Path, client: str, host: str) -> dict[str, object]:
    """Both sides in memory; what the broker sees of the client."""
    server_context = make_context(
        TlsOptions(
            certfile=str(folder / "server.pem"), keyfile=str(folder / "server.key"), cafile=str(folder / "ca.pem"),
            client_certificates="required",
        )
    )  # fmt: skip
    client_context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client_context.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client_context.wrap_bio(down, up, server_hostname=host)
    far = server_context.wrap_bio(up, down, server_side=True)
    open_ones: set[object] = set()
    while len(open_ones) < 2:
        for side in (near, far):
            try:
                side.do_handshake()
                open_ones.add(side)
            except ssl.SSLWantReadError:
                pass
    return far.getpeercert() or {}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my certs"
    assert main(["certs", "dev", str(made)]) == 0
    return made


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_a_client_and_the_broker_believe_each_other(folder: Path, host: str) -> None:
    assert (("commonName", "client"),) in handshake(folder, "client", host)["subject"]  # type: ignore[operator]


def test_keys_are_for_their_owner_only(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "server.key", "client.key"}
    assert set(modes) == {"ca.key", "ca.pem", "server.key", "server.pem", "client.key", "client.pem"}


def test_another_client_is_of_the_same_authority(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", "dev", str(folder), "--client", "pump-7"]) == 0
    assert (("commonName", "pump-7"),) in handshake(folder, "pump-7", "localhost")["subject"]  # type: ignore[operator]
    assert all((folder / name).read_bytes() == content for name, content in before.items())


def test_a_name_more_is_the_brokers_too(tmp_path: Path) -> None:
    assert main(["certs", "dev", str(tmp_path), "--host", "broker.lan", "--host", "192.0.2.7"]) == 0
    for host in ("broker.lan", "192.0.2.7"):
        handshake(tmp_path, "client", host)


def test_the_line_it_prints_can_be_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", "dev", str(folder), "--client", "two"]) == 0
    line = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert line[0] == "mosquitto_pub"
    for flag, name in (("--cafile", "ca.pem"), ("--cert", "two.pem"), ("--key", "two.key")):
        assert line[line.index(flag) + 1] == str(folder / name)


def test_nothing_is_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", "dev", str(folder)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["", "../x", "ca", "server", ".hidden"])
def test_a_client_needs_a_name_that_can_be_a_files(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certs", "dev", str(tmp_path / "c"), f"--client={name}"]) == 1
    assert "--client" in capsys.readouterr().err and not os.path.exists(tmp_path / "c")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["certs", "dev", str(tmp_path / "file" / "c")]) == 1
    assert "rumqd: " in capsys.readouterr().err
