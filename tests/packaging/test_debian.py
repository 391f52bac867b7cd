"""The Debian package: built, installed, used, removed, in a root of its own that has nothing but Debian 12.

Compiles for some minutes, unless RUMQ_WHEEL names a wheel."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.conftest import PACKAGING, ROOT, tool

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
INCLUDED = "python3,systemd,init-system-helpers"


class Chroot:
    """A root of Debian. Commands run in a process and mount namespace of their own, and see nothing of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, *command: str, user: str = "root", ok: bool = True) -> str:
        inside = [
            "chroot",
            f"--userspec={user}",
            str(self.root),
            "env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        ]
        unshare = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={self.root}/proc"]
        done = subprocess.run(
            [*unshare, *inside, "HOME=/tmp", *command],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert not ok or done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by packaging/debian/build."""
    out = tmp_path_factory.mktemp("deb")
    wheel = ["--wheel", os.environ["RUMQ_WHEEL"]] if "RUMQ_WHEEL" in os.environ else []
    if sys.version_info[:2] != (3, 11):
        pytest.skip("Python 3.11 is missing: Debian 12's")
    done = subprocess.run(
        [PACKAGING / "debian/build", *wheel, str(out)],
        env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return Path(done.stdout.split()[-1])


@pytest.fixture(scope="module")
def chroot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chroot]:
    if os.geteuid():
        pytest.skip("only root makes a root")
    folder = tmp_path_factory.mktemp("root")
    made = [
        tool("mmdebstrap", "Debian's mmdebstrap"),
        "--mode=unshare",
        "--variant=minbase",
        f"--include={INCLUDED}",
    ]
    archive = folder / "root.tar"
    if done := subprocess.run([*made, "bookworm", str(archive)], check=False, timeout=900).returncode:
        pytest.skip(f"no root could be made, status {done}: is Debian's archive within reach?")
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(root)], check=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    yield Chroot(root)
    shutil.rmtree(root)


def test_lintian_finds_nothing(package: Path) -> None:
    done = subprocess.run(
        [tool("lintian", "Debian's lintian"), "--fail-on=error,warning", str(package)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_it_is_installed_serves_and_leaves_the_messages(package: Path, chroot: Chroot) -> None:
    shutil.copy(package, chroot.root / "rumq.deb")
    said = chroot("dpkg", "--install", "/rumq.deb")
    passwords = dict(re.findall(r"^(admin) +(\S{24})$", said, re.MULTILINE))
    assert set(passwords) == {"admin"}
    assert "kernels: compiled" in chroot("rumqd", "--version")
    chroot("test", "-e", "/etc/systemd/system/multi-user.target.wants/rumqd.service")
    completion = ". /usr/share/bash-completion/completions/rumqd; COMP_WORDS=(rumqd ask clie); COMP_CWORD=2; _rumqd"
    assert chroot("bash", "-c", f'{completion}; echo "${{COMPREPLY[@]}}"').split() == ["clients", "client"]
    for each in ("zsh/vendor-completions/_rumqd", "fish/vendor_completions.d/rumqd.fish"):
        assert "rumqd completion --words" in (chroot.root / "usr/share" / each).read_text()
    assert "no broker answers" in chroot("rumqd", "top", "--data", "/tmp", ok=False), "rich is there"

    # As the unit starts it: its user, its settings, nothing that only root may.
    shutil.copy(ROOT / "tests/packaging/installed.py", chroot.root / "installed.py")
    assert '"kernels": "compiled"' in chroot("python3", "/installed.py", user="rumq:rumq")
    assert "a broker can start" in chroot(
        "rumqd", "check", "--config", "/etc/rumq/config.toml", "--port", "0", user="rumq:rumq"
    )
    assert "Permission denied" in chroot("cat", "/etc/rumq/certs/ca.key", user="rumq:rumq", ok=False)
    assert "Permission denied" in chroot("cat", "/etc/rumq/users", user="nobody:nogroup", ok=False)

    users = (chroot.root / "etc/rumq/users").read_text()
    assert "nothing is changed" not in chroot("dpkg", "--install", "/rumq.deb")
    assert (chroot.root / "etc/rumq/users").read_text() == users, "an upgrade keeps the passwords"

    (chroot.root / "var/lib/rumq/main").mkdir()
    chroot("dpkg", "--remove", "rumq")
    assert not (chroot.root / "usr/lib/rumq").exists() and (chroot.root / "etc/rumq/users").exists()
    said = chroot("dpkg", "--purge", "rumq")
    assert "messages in /var/lib/rumq are kept" in said and "not removed" not in said
    assert not (chroot.root / "etc/rumq").exists() and (chroot.root / "var/lib/rumq/main").exists()
