"""Progress bars: on standard error, on a terminal or when asked for, never in a pipe."""

import io
import json
from pathlib import Path

import pytest

from commitlog.read.verify import verify
from rumq.cli.data.counted_files import CountedFiles, segment_bytes
from rumq.terminal.progress import Progress
from tests.cli.conftest import Broker, rumqd
from tests.cli.terminal import Terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 40 records of 10,000 bytes."""
    path = tmp_path_factory.mktemp("progress") / "data"
    broker = Broker(path)
    sent = "".join(f"{number:0>10000}\n" for number in range(40)).encode()
    assert rumqd("pub", "-p", broker.port, "plant/7", "-q", "1", "-l", stdin=sent).status == 0
    assert broker.stop() == 0
    return path


def test_a_bar_says_how_far_how_fast_and_how_long() -> None:
    clock = Clock()
    bar = Progress("verify", 4 << 20, "bytes", out=Screen(), now=clock)
    clock.now = 2.0
    bar.advance(1 << 20)
    text = bar.line(2.0, 120)
    assert text.startswith("verify  [#######-----------------------]")
    assert text.endswith(" 25 %  1.0 MiB of 4.0 MiB  512.0 KiB/s  6 s left")
    assert len(bar.line(2.0, 60)) <= 60 and len(bar.line(2.0, 20)) == 20
    counting = Progress("export", 0, "records", out=Screen(), now=clock)
    clock.now = 4.0
    counting.advance(1000)
    assert counting.line(4.0, 80) == "export  1,000 records  500 records/s"


def test_a_bar_is_drawn_ten_times_a_second_at_most_and_leaves_nothing() -> None:
    clock, screen = Clock(), Screen()
    with Progress("verify", 1000, "bytes", out=screen, now=clock) as bar:
        for step in range(1000):
            clock.now = step / 1000
            bar.advance(1)
        assert 3 <= screen.getvalue().count("verify") <= 8, "0.3 s without, then ten a second"
        bar.clear()
        before = screen.getvalue()
        bar.clear()
        assert screen.getvalue() == before and before.endswith("\r\x1b[K")
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_pipe_gets_nothing_unless_it_is_asked_for_and_then_lines() -> None:
    for is_on, lines in ((None, 0), (False, 0), (True, 2)):
        clock, out = Clock(), io.StringIO()
        with Progress("verify", 120, "bytes", is_on=is_on, out=out, now=clock) as bar:
            for second in range(12):
                clock.now = float(second)
                bar.advance(10)
        assert out.getvalue().count("\n") == lines and "\r" not in out.getvalue()


def test_a_terminal_may_be_spared() -> None:
    screen = Screen()
    clock = Clock()
    with Progress("verify", 10, "bytes", is_on=False, out=screen, now=clock) as bar:
        clock.now = 9.0
        bar.advance(5)
    assert screen.getvalue() == ""


def test_what_is_counted_is_what_is_read_once(data: Path) -> None:
    read = []
    assert list(verify(CountedFiles(read.append), str(data))) == []
    assert 40 * 10_000 < sum(read) <= segment_bytes(str(data)), "indexes are compared by reading twice"


@pytest.mark.parametrize(
    "words",
    [("log", "verify"), ("doctor",), ("backup", "copy"), ("log", "export", "--to", "out.jsonl")],
    ids=lambda words: words[0] + words[-1],
)
def test_commands_that_take_long_have_a_bar_on_a_terminal_and_none_in_a_pipe(
    data: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    words = tuple(str(tmp_path / word) if word in ("copy", "out.jsonl") else word for word in words)
    piped = rumqd(*words, "--data", str(data))
    assert (piped.status, piped.err) == (0, "")
    shown = Terminal(*words, "--data", str(data), "--progress")
    try:
        name = next(word for word in ("verify", "doctor", "backup", "export") if word in words)
        shown.expect(rf"{name}  .*% .*/s")
        assert shown.end() == 0
    finally:
        shown.close()
    assert shown.raw.count(b"\r\x1b[K") >= 2


def test_a_restore_says_as_json_what_it_did(data: Path, tmp_path: Path) -> None:
    assert rumqd("backup", str(tmp_path / "copy"), "--data", str(data)).status == 0
    restored = rumqd("restore", str(tmp_path / "copy"), "--data", str(tmp_path / "new"), "--json")
    assert (restored.status, restored.err) == (0, "")
    (said,) = map(json.loads, restored.out.splitlines())
    assert said["data"] == str(tmp_path / "new") and said["files"] > 3
