"""`rumqd init`: a folder from which a broker starts that admits nobody without a password."""

import grp
import os
import stat
import tomllib
from pathlib import Path

import pytest

from rumq.auth.credentials.passwords import parse
from rumq.cli.admin import init
from rumq.cli.main import main
from tests.broker_process import SECONDS_MAX, Rumqd
from tests.cli.conftest import Ended, rumqd


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in sorted(folder.rglob("*"))}


def begun(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The folder; the passwords that were printed."""
    folder = tmp_path / "etc"
    group = grp.getgrgid(os.getegid()).gr_name
    devices = ("--device", "pump-7", "--device", "pump-8")
    done = rumqd("init", "--dir", str(folder), "--data", str(tmp_path / "data"), "--group", group, *devices)
    assert (done.status, done.err) == (0, "")
    return folder, dict(line.split() for line in done.out.splitlines() if len(line.split()) == 2)


def test_secrets_are_hashed_and_nobody_else_reads_them(tmp_path: Path) -> None:
    folder, passwords = begun(tmp_path)
    assert set(passwords) == {"admin", "pump-7", "pump-8"}
    assert all(len(each) == 24 for each in passwords.values()) and len(set(passwords.values())) == 3
    text = (folder / "users").read_text()
    assert set(parse(text, "users")) == set(passwords) and text.count("$argon2id$") == 3
    assert not [
        each for each in passwords.values() for path in folder.glob("*") if path.is_file() and each in path.read_text()
    ]
    assert modes(folder) == {
        "certs": 0o750, "certs/ca.key": 0o600, "certs/ca.pem": 0o644, "certs/server.key": 0o640,
        "certs/server.pem": 0o644, "config.toml": 0o640, "rules.toml": 0o640, "users": 0o640,
    }  # fmt: skip


def test_it_changes_nothing_that_is_there(tmp_path: Path) -> None:
    folder, _ = begun(tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = rumqd("init", "--dir", str(folder))
    assert again.status == 0 and "nothing is changed" in again.out
    (folder / "config.toml").unlink()  # as one that was interrupted
    more = rumqd("init", "--dir", str(folder), "--data", str(tmp_path / "data"))
    assert more.status == 0 and "password" not in more.out
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_broker_starts_from_it_and_admits_users_over_tls_by_their_rules(tmp_path: Path) -> None:
    folder, passwords = begun(tmp_path)
    config = tomllib.loads((folder / "config.toml").read_text())
    assert [(each["host"], each["port"]) for each in config["listener"]] == [("*", 8883), ("localhost", 1883)]
    text = (folder / "config.toml").read_text().replace("8883", "0").replace("1883", "0")
    (folder / "config.toml").write_text(text)

    class Begun(Rumqd):
        def command(self) -> list[str]:
            return [*super().command()[:4], "--config", str(folder / "config.toml")]

    assert rumqd("check", "--config", str(folder / "config.toml")).status == 0
    broker = Begun(tmp_path / "data")
    broker.start()
    try:
        bound = broker.named("listener.bound")
        secure = next(each["port"] for each in bound if each["protocol"] == "mqtt over TLS")
        plain = next(each["port"] for each in bound if each["protocol"] == "mqtt")
        assert {each["host"] for each in bound if each["protocol"] == "mqtt"} <= {"127.0.0.1", "::1"}
        tls = (
            "-h",
            "localhost",
            "-p",
            str(secure),
            "--cafile",
            str(folder / "certs/ca.pem"),
            "-q",
            "1",
            "-m",
            "x",
        )

        def published(*arguments: str) -> Ended:
            return rumqd("pub", *arguments)

        device = ("-u", "pump-7", "-P", passwords["pump-7"])
        assert published(*tls, *device, "device/pump-7/temp").status == 0
        assert published(*tls, *device, "device/pump-8/temp").status != 0
        assert published(*tls, *device, "-i", "pump-8", "device/pump-8/temp").status != 0, "whatever its id is"
        added = rumqd("init", "--dir", str(folder), "--device", "pump-9", "--device", "pump-7")
        assert added.status == 0 and "pump-7 is there, and keeps its password" in added.out
        (password,) = [line.split()[1] for line in added.out.splitlines() if line.startswith("pump-9")]
        broker.hang_up()
        broker.event("settings.reloaded")
        assert published(*tls, "-u", "pump-9", "-P", password, "device/pump-9/temp").status == 0
        assert published(*tls, *device, "device/pump-7/temp").status == 0
        assert published(*tls, "-u", "admin", "-P", passwords["admin"], "plant/7").status == 0
        assert published(*tls, "-u", "admin", "-P", "wrong", "plant/7").status != 0
        local = ("-h", "localhost", "-p", str(plain), "-q", "1", "-m", "x")
        assert published(*local, "plant/7").status != 0, "not even this machine without a password"
        assert published(*local, "-u", "admin", "-P", passwords["admin"], "plant/7").status == 0
        assert not broker.named("listener.open", "secrets.exposed", "data.exposed")
    finally:
        broker.end()
    assert broker.process.wait(SECONDS_MAX) == 0


def test_a_group_or_path_that_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--dir", str(tmp_path / "etc"), "--group", "no-such-group"]) == 1
    assert main(["init", "--dir", f'{tmp_path}/a"b']) == 1
    assert "no such group" in (said := capsys.readouterr().err) and "without quotes" in said
    assert not os.listdir(tmp_path)


def test_a_password_is_no_option_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["-vQS4", "-x", "a-b"])
    monkeypatch.setattr(init.secrets, "token_urlsafe", lambda size: next(drawn))
    assert init.drawn_password() == "a-b"


def test_certificates_of_nodes_are_of_an_authority_of_their_own(tmp_path: Path) -> None:
    """Also where the rest is there already, as from a version that made none."""
    folder, _ = begun(tmp_path)
    words = ["init", "--dir", str(folder), "--cluster", "plant", "--node", "n1", "--node", "n2"]
    done = rumqd(*words)
    assert (done.status, done.err) == (0, "") and "nothing is changed" in done.out
    found = {name: mode for name, mode in modes(folder).items() if name.startswith("nodes")}
    assert found == {
        "nodes": 0o750, "nodes/ca.key": 0o600, "nodes/ca.pem": 0o644, "nodes/n1.key": 0o640, "nodes/n1.pem": 0o644,
        "nodes/n2.key": 0o640, "nodes/n2.pem": 0o644,
    }  # fmt: skip
    assert (folder / "nodes/ca.pem").read_bytes() != (folder / "certs/ca.pem").read_bytes()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert rumqd(*words).status == 0
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["a/b", "+", "$SYS", "admin", "a:b", ""])
def test_a_device_has_a_name_that_is_a_level_of_a_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["init", "--dir", str(tmp_path / "etc"), "--device", name]) == 1
    assert "--device" in capsys.readouterr().err and not os.listdir(tmp_path)


def test_a_folder_of_before_is_told_what_to_change(tmp_path: Path) -> None:
    folder, _ = begun(tmp_path)
    old = (folder / "rules.toml").read_text().replace("device/%u/#", "device/%c/#")
    (folder / "rules.toml").write_text(old)
    assert "any client id" in rumqd("init", "--dir", str(folder), "--device", "pump-9").out
