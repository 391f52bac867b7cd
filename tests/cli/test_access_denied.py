"""Commands on a data directory that the operating system keeps from this user."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ENVIRONMENT, SECONDS_MAX, Broker, Ended, command, rumqd

# Modes do not hold back root, unless these two capabilities are taken from it.
CAPABILITIES = "-dac_override,-dac_read_search"
READERS = ("log ls", "log read", "log verify", "log export", "doctor", "backup COPY")
CASES = [(".", "ask status")] + [(place, reader) for place in (".", "main", "main/g1/p0") for reader in READERS]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    broker = Broker(folder)
    assert rumqd("pub", "-p", broker.port, "plant/7", "-m", "x", "-q", "1").status == 0
    yield folder
    assert broker.stop() == 0


def held_back(*arguments: str, cwd: Path) -> Ended:
    before = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv (Debian's util-linux) to be held back as root")
        before = ["setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}"]
    done = subprocess.run(
        [*before, *command(*arguments)], capture_output=True, timeout=SECONDS_MAX, env=ENVIRONMENT, cwd=cwd,
        check=False, text=True,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(("place", "words"), CASES)
def test_a_command_says_who_may_read_and_not_that_there_is_nothing(data: Path, place: str, words: str) -> None:
    closed = data / place
    closed.chmod(0)
    try:
        ended = held_back(*words.split(), "--data", str(data), cwd=data.parent)
    finally:
        closed.chmod(0o700)
    said = ended.out + ended.err
    assert ended.status == 1, said
    assert "Traceback" not in said
    assert f"chmod u+rwX {closed.resolve()}" in said
    assert "rumqd run" not in said and "nothing is wrong" not in said
    assert not (data.parent / "COPY" / "BACKUP").exists()
