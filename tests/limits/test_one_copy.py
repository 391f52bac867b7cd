"""What a message costs the disk: one copy, whoever subscribes; and no call to it on the thread that serves clients."""

import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop
from tests.limits.conftest import Dial, Run

LASTING = [(Prop.SESSION_EXPIRY, 3600)]
PAYLOAD = bytes(1000)
MESSAGES = 200
# Calls that may wait for a disk, with the file they are about in angle brackets (strace -y).
DISK_CALLS = ("pwrite64,pwritev,pwritev2,pread64,preadv,preadv2,write,read,fsync,fdatasync,fallocate,ftruncate,"
              "openat,rename,renameat,renameat2,unlink,unlinkat,mkdir")  # fmt: skip


def stored_bytes(data: Path) -> int:
    """Without the zeros ahead of an active segment's chunks."""
    return sum(len(path.read_bytes().rstrip(b"\0")) for path in data.rglob("*.seg"))


def publish(broker: Rumqd, join: Dial, client_id: str) -> int:
    """Publish the same again; returns by how many bytes the files have grown."""
    publisher = join(broker, client_id)
    before = stored_bytes(broker.data)
    for _ in range(MESSAGES):
        publisher.publish("t", PAYLOAD, qos=1)
    return stored_bytes(broker.data) - before


def test_a_message_is_stored_once_for_any_number_of_subscribers(run: Run, join: Dial) -> None:
    broker = run()
    join(broker, "first").publish("t", b"opens the files", qos=1)
    alone = publish(broker, join, "alone")
    for number in range(20):
        peer = join(broker, f"s{number}", properties=LASTING)
        assert peer.subscribe("t", qos=1) == [1]
        peer.leave()
    watched = publish(broker, join, "watched")
    assert alone >= MESSAGES * len(PAYLOAD)
    # Twenty sessions that wait for every message cost less than a tenth of one copy more.
    assert watched < 1.1 * alone


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace (sudo apt-get install strace)")
def test_the_thread_that_serves_clients_calls_no_disk(data: Path, tmp_path: Path, join: Dial) -> None:
    broker = Rumqd(data, "--set", "log.segment_bytes_max=65536", "--set", "log.hot_bytes_max=65536")
    broker.start()
    trace = tmp_path / "trace"
    tracer = subprocess.Popen(
        ["strace", "-f", "-y", "-qq", "-e", f"trace={DISK_CALLS}", "-o", str(trace), "-p", str(broker.process.pid)],
        stderr=subprocess.PIPE,
    )
    try:
        wait_until_attached(broker, tracer)
        publish(broker, join, "p")
        lasting = join(broker, "s", properties=LASTING)
        lasting.subscribe("t", qos=2)
        publish(broker, join, "q")
        with Peer(broker.address) as reader:
            reader.connect("reader")
            reader.subscribe("$log/earliest/t", qos=1)
            reader.messages(2 * MESSAGES)
    finally:
        tracer.terminate()
        tracer.wait()
        broker.end()
    by_thread: dict[str, list[str]] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if str(data) in line and not re.search(r"<[^>]*ask\.sock", line):
            by_thread.setdefault(line.split()[0], []).append(line)
    assert by_thread, "the trace saw the writer"
    assert by_thread.get(str(broker.process.pid), []) == []


def wait_until_attached(broker: Rumqd, tracer: "subprocess.Popen[bytes]") -> None:
    status = Path(f"/proc/{broker.process.pid}/status")
    pause = threading.Event()
    while "TracerPid:\t0" in status.read_text():
        assert tracer.poll() is None, tracer.stderr.read() if tracer.stderr else ""
        pause.wait(0.01)
