"""What rumqd says and does at its start: where its data is, and which data directory it does not take."""

import os
import pty
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests import admin_questions
from tests.broker_process import ENVIRONMENT, SECONDS_MAX, Rumqd, run_command
from tests.conformance.peer import Peer
from tests.limits.conftest import Dial, Run

IN_USE = 3
HEADER_CRC_AT = 4092
# Root may write anywhere; without this capability it is as any other user.
AS_A_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def refusal(data: Path, *before: str) -> str:
    """Start a broker that must not start; returns the sentence it leaves with."""
    done = subprocess.run(
        [*before, *run_command("--data", str(data))],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == IN_USE, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(f"rumqd: data directory {data}: ")
    return sentence


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_data_directory_in_use_is_refused_and_its_broker_goes_on(run: Run, join: Dial) -> None:
    broker = run()
    client = join(broker, "c")
    assert "another broker holds it" in refusal(broker.data)
    client.publish_all("t", [b"before", b"after"], qos=1)
    client.subscribe("$log/earliest/t", qos=1)
    assert client.payloads(2) == [b"before", b"after"]
    assert "another broker holds it" in refusal(broker.data), "also the second time"


def test_a_data_directory_of_a_broker_that_was_killed_is_taken(run: Run) -> None:
    run().kill()
    run()


@pytest.mark.parametrize("format_", ["rumq 2", "rumq 10", "something else", ""])
def test_a_data_directory_of_another_format_is_refused_untouched(run: Run, format_: str) -> None:
    broker = run()
    assert broker.stop() == 0
    (broker.data / "FORMAT").write_text(f"{format_}\n")
    before = everything(broker.data)
    sentence = refusal(broker.data)
    assert repr(format_) in sentence and "'rumq 1'" in sentence
    after = everything(broker.data)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} <= {
        str(broker.data / "LOCK")
    }


def test_a_segment_for_newer_readers_is_refused_and_not_passed_over(run: Run, join: Dial) -> None:
    """docs/reference/log-format.md, "Segment": the minimum reader version."""
    broker = run()
    join(broker, "c").publish("t", b"kept", qos=1)
    assert broker.stop() == 0
    (path,) = broker.data.glob("main/**/*.seg")
    segment = bytearray(path.read_bytes())
    struct.pack_into("<HH", segment, 8, 2, 2)
    struct.pack_into("<I", segment, HEADER_CRC_AT, zlib.crc32(segment[:HEADER_CRC_AT]))
    path.write_bytes(segment)
    assert "needs a reader of version 2, this is 1" in refusal(broker.data)


@pytest.mark.parametrize("made", [True, False], ids=["read-only", "parent read-only"])
def test_a_data_directory_that_cannot_be_written_is_refused(data: Path, made: bool) -> None:
    if made:
        data.mkdir()
    closed = data if made else data.parent
    closed.chmod(0o500)
    try:
        sentence = refusal(data, *AS_A_USER)
    finally:
        closed.chmod(0o700)
    assert "may not write there" in sentence and "--data" in sentence


def test_a_data_directory_that_became_read_only_is_refused(run: Run) -> None:
    broker = run()
    assert broker.stop() == 0
    folders = [broker.data, *(path for path in broker.data.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        sentence = refusal(broker.data, *AS_A_USER)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert "may not write there" in sentence


def test_a_data_directory_that_is_a_file_is_refused(data: Path) -> None:
    data.write_text("")
    assert "it is a file, not a directory" in refusal(data)
    data.unlink()


def test_bare_rumqd_says_on_a_terminal_where_its_data_is(tmp_path: Path) -> None:
    """No argument at all; the port alone is taken from the environment, so that it is a free one."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "rumq"],
            stderr=theirs,
            cwd=tmp_path,
            env=ENVIRONMENT | {"RUMQ_LISTENER_PORT": "0"},
        )
        os.close(theirs)
        said = b""
        while b"broker.ready" not in said:
            said += os.read(ours, 4096)
        process.terminate()
        assert process.wait(SECONDS_MAX) == 0
    finally:
        os.close(ours)
    assert str(tmp_path / "rumq-data").encode() in said
    assert (tmp_path / "rumq-data" / "FORMAT").read_text() == "rumq 1\n"


@pytest.mark.parametrize("shards", [1, 2])
def test_ready_means_that_it_can_be_asked(run: Run, shards: int) -> None:
    """Each of its shards: one that cannot be asked yet would be missing from the sums."""
    broker = run("--set", f"shards.count={shards}")
    for name in ("ask.sock", "ask-1.sock")[:shards]:
        assert admin_questions.ask_one(str(broker.data), name, {"ask": "status"})["sessions"] == 0


@pytest.mark.parametrize(
    ("host", "anonymous", "told"),
    [
        ("127.0.0.1", "auto", []),
        ("127.0.0.1", "yes", []),
        ("0.0.0.0", "auto", ["listener.closed"]),
        ("0.0.0.0", "yes", ["listener.open"]),
    ],
)
def test_an_address_for_everybody_is_told(data: Path, host: str, anonymous: str, told: list[str]) -> None:
    broker = Rumqd(data, "--host", host, "--set", f"auth.anonymous={anonymous}")
    broker.start()
    try:
        assert [event["event"] for event in broker.named("listener.open", "listener.closed")] == told
    finally:
        broker.end()


def test_ready_means_that_it_accepts(run: Run) -> None:
    with Peer(run().address) as client:
        assert client.connect("c").code == 0
