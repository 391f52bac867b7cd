"""Children of a supervisor collect garbage without copying what they share with it."""

import subprocess
import sys

# A parent with many objects forks; the child collects, and says how many KiB it has copied or made.
PROGRAM = """
import gc, os
objects = [[each] for each in range(200_000)]  # 20 MB in lists
{prepare}
def private_kib():
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
if os.fork() == 0:
    before = private_kib()
    gc.collect()
    print(private_kib() - before, flush=True)
    os._exit(0)
os.wait()
"""
SHARED = "from rumq.supervision.fork_memory import share_memory; share_memory()"


def copied_kib(prepare: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(prepare=prepare)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_a_collection_in_a_child_copies_next_to_nothing() -> None:
    assert copied_kib(SHARED) < 2_000


def test_without_it_nearly_everything_is_copied() -> None:
    """What the test above would see if nothing were done."""
    assert copied_kib("") > 8_000
