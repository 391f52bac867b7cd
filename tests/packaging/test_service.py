"""The unit of systemd: systemd's own tools find nothing wrong, and a broker can live with what it forbids."""

import configparser
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rumq.cli.main import REFUSED
from rumq.process.broker.broker_process import DATA_IN_USE
from tests.broker_process import Rumqd
from tests.packaging.conftest import PACKAGING, tool

UNIT = PACKAGING / "systemd/rumqd.service"
SECONDS_MAX = 60
EXPOSURE_MAX = 20  # tenths, of what `systemd-analyze security` counts
# In the place of MemoryDenyWriteExecute: PR_SET_MDWE of Linux 6.3, which refuses the same.
NO_WRITABLE_CODE = (
    "import ctypes, os, sys\n"
    "if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): raise SystemExit(77)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.fixture
def unit() -> dict[str, str]:
    """[Service], the last value of each key."""
    parser = configparser.RawConfigParser(strict=False, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return dict(parser["Service"])


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [tool("systemd-analyze", "Debian's systemd"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def test_a_unit_asks_for_what_the_broker_does(unit: dict[str, str]) -> None:
    assert unit["Type"] == "notify" and unit["KillMode"] == "mixed" and int(unit["WatchdogSec"]) >= 10
    assert unit["Restart"] == "on-failure" and unit["RestartSec"] == "5"
    assert unit["RestartPreventExitStatus"].split() == [str(REFUSED), str(DATA_IN_USE)]
    assert "ProcSubset" not in unit, "the boot id tells of a power loss"


def test_systemd_finds_no_fault_with_it(tmp_path: Path) -> None:
    copy = tmp_path / "rumqd.service"
    copy.write_text(UNIT.read_text().replace("/usr/bin/rumqd", sys.executable))
    done = analyzed("verify", "--man=no", str(copy))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_it_leaves_little_exposed(tmp_path: Path) -> None:
    done = analyzed("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", str(UNIT))
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_the_user_and_the_folders_are_made(tmp_path: Path) -> None:
    for folder in ("etc", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    users, folders = (PACKAGING / f"systemd/rumq.{what}" for what in ("sysusers", "tmpfiles"))
    for program, package, *arguments in (
        ("systemd-sysusers", "systemd", str(users)),
        ("systemd-tmpfiles", "systemd", "--create", str(folders)),
    ):
        command = [tool(program, f"Debian's {package}"), f"--root={tmp_path}", *arguments]
        if os.geteuid():
            pytest.skip("only root makes folders of other users")
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_MAX)
    user = next(line for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("rumq:"))
    assert user.endswith("/var/lib/rumq:/usr/sbin/nologin")
    uid = int(user.split(":")[2])
    kept, settings = (tmp_path / "var/lib/rumq").stat(), (tmp_path / "etc/rumq").stat()
    assert (kept.st_uid, kept.st_mode & 0o777) == (uid, 0o700)
    assert (settings.st_uid, settings.st_gid, settings.st_mode & 0o777) == (0, uid, 0o750)


def allowed_calls(unit_text: str) -> set[str]:
    """What SystemCallFilter leaves, with each group's calls as this machine's systemd lists them."""
    groups: dict[str, list[str]] = {}
    for line in analyzed("syscall-filter", "--no-pager").stdout.splitlines():
        line = re.sub("\x1b\\[[0-9;]*m", "", line)
        if line.startswith("@"):
            groups[name := line.strip()] = []
        elif groups and (found := re.fullmatch(r"    (@?[a-z0-9_-]+)", line)):
            groups[name].append(found[1])

    def calls(name: str) -> set[str]:
        if not name.startswith("@"):
            return {name}
        return set[str]().union(*(calls(each) for each in groups[name]))

    allowed: set[str] = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", unit_text, re.MULTILINE):
        for name in value.removeprefix("~").split():
            allowed = allowed - calls(name) if value.startswith("~") else allowed | calls(name)
    return allowed | calls("@default")


@pytest.mark.parametrize("shards", [1, 2])
def test_a_broker_does_without_what_the_unit_forbids(tmp_path: Path, shards: int) -> None:
    """No call that SystemCallFilter lacks, no writable code, from the start over a reload to the end."""
    allowed = allowed_calls(UNIT.read_text())
    strace, trace = tool("strace", "Debian's strace"), tmp_path / "trace"
    family = re.compile(r"socket\((AF_\w+)")

    class Confined(Rumqd):
        def command(self) -> list[str]:
            confined = [sys.executable, "-c", NO_WRITABLE_CODE, *super().command()]
            return [strace, "-D", "-f", "-qq", "-o", str(trace), "-e", "signal=none", *confined]

    broker = Confined(tmp_path / "data", "--shards", str(shards), "--set", "flight.port=-1")
    try:
        broker.start()
        broker.heard(lambda event: event.get("protocol") == "flight")  # a sidecar is confined as its broker is
        publish = [sys.executable, "-m", "rumq", "pub", "-p", str(broker.address.port), "t/1", "-m", "x"]
        subprocess.run([*publish, "-q", "1"], check=True, timeout=SECONDS_MAX)
        broker.hang_up()
        broker.event("settings.reloaded", number=shards)
        assert broker.stop() == 0
    finally:
        broker.end()
    text = trace.read_text()
    made = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", text, re.MULTILINE))
    assert {"fdatasync", "epoll_wait"} & made and "execve" in made
    assert made - allowed == set()
    assert set(family.findall(text)) <= {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"}


def test_a_call_that_is_not_allowed_would_be_seen() -> None:
    allowed = allowed_calls(UNIT.read_text())
    assert {"read", "epoll_wait", "fdatasync", "setpriority", "clone3"} <= allowed
    assert not {"mount", "ptrace", "reboot", "setuid", "chown", "bpf"} & allowed


def test_a_manager_is_told_over_a_socket_that_the_unit_permits(unit: dict[str, str]) -> None:
    families = unit["RestrictAddressFamilies"].split()
    assert families == [each.name for each in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)]
