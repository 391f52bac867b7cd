"""Memory and wake-ups of a process with its children, from the kernel."""

import os
import subprocess
import sys

from bench.cluster.idle import Memory, memory_of, rollup, wakes_of

# A parent with 20 MB shares them with a child; both wait.
SHARED = "import os\ndata = bytearray(b'x') * 20_000_000\nif os.fork(): print(flush=True)\nos.read(0, 1)"


def test_a_page_that_two_processes_share_counts_once() -> None:
    command = [sys.executable, "-c", SHARED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        parent.stdout.readline()
        found = memory_of(parent.pid)
        assert 20_000 < found.anonymous < 39_000 and found.anonymous <= found.pss and found.file > 1000
        parent.stdin.close()


def test_what_the_kernel_says_is_read_by_name() -> None:
    text = "00400000-7fff3000 ---p 00000000 00:00 0 [rollup]\nRss:  70304 kB\nPss:   27421 kB\nPss_Anon: 22016 kB\n"
    assert rollup(text) == {"Rss": 70304, "Pss": 27421, "Pss_Anon": 22016}


def test_a_process_is_woken_as_often_as_it_waits() -> None:
    before = wakes_of(os.getpid())
    read, written = os.pipe()
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", f"import os; os.write({written}, b'x')"], pass_fds=[written]):
            os.read(read, 1)
    assert wakes_of(os.getpid()) - before >= 5


def test_who_has_gone_has_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert memory_of(ended.pid) == Memory(0, 0, 0) and wakes_of(ended.pid) == 0
