"""A worker that stalls, raises, leaks or dies does so alone, and says how; also what it has started ends with it."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from rumq.functions.function_rows import SCHEMA, no_rows
from rumq.functions.rules import FunctionRules
from rumq.functions.trial import maybe_fault
from rumq.functions.worker_process import FunctionFault, WorkerProcess

MIB = 1 << 20
Start = Callable[..., WorkerProcess]
BATCH = pa.RecordBatch.from_pylist([{"topic": "plant/7", "payload": b"21.5"}], SCHEMA)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    workers: list[WorkerProcess] = []

    def begin(text: str, seconds: float = 60.0, memory_bytes_max: int = 256 * MIB) -> WorkerProcess:
        (tmp_path / "f.py").write_text(text)
        code = str(tmp_path / "f.py")
        workers.append(
            WorkerProcess(FunctionRules("f", ("#",), code, "f/", seconds, memory_bytes_max=memory_bytes_max))
        )
        return workers[-1]

    yield begin
    for each in workers:
        each.close()


def fault_of(worker: WorkerProcess) -> FunctionFault:
    worker.wait_ready()
    with pytest.raises(FunctionFault) as raised:
        worker.call(BATCH)
    return raised.value


def test_a_batch_comes_back_as_messages(start: Start) -> None:
    worker = start("def transform(batch): print('aside'); return batch")
    worker.wait_ready()
    for _ in range(3):
        assert worker.call(BATCH).column("topic").to_pylist() == ["plant/7"]
    assert worker.call(no_rows()).num_rows == 0


def test_a_large_batch_goes_both_ways_at_once(start: Start) -> None:
    worker = start("def transform(batch): return batch")
    worker.wait_ready()
    rows = [{"topic": "plant/7", "payload": bytes(100_000)} for _ in range(60)]
    assert worker.call(pa.RecordBatch.from_pylist(rows, SCHEMA)).num_rows == 60


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("def transform(b): raise ValueError('no number')", "raised", "ValueError: no number"),
        ("def transform(b): raise ValueError('a' * 9999)", "raised", "ValueError: aaa"),
        ("def transform(b): return 7", "result", "it returned int"),
        ("import os\ndef transform(b): os._exit(3)", "died", "exit status 3"),
        ("import os\ndef transform(b): os.kill(os.getpid(), 9)", "died", "SIGKILL"),
        ("import sys\ndef transform(b): sys.exit(3)", "died", "exit status 3"),
        ("def transform(b): return transform(b)", "raised", "RecursionError"),
    ],
)
def test_a_failure_has_a_kind_and_a_line(start: Start, text: str, kind: str, words: str) -> None:
    fault = fault_of(start(text))
    assert fault.kind == kind and words in fault.why and "\n" not in fault.why
    assert fault.ends_worker is (kind == "died")


def test_one_that_stalls_is_killed_with_what_it_has_started(start: Start) -> None:
    text = "import subprocess, time\ndef transform(b):\n subprocess.Popen(['sleep', '600'])\n time.sleep(600)"
    worker = start(text, seconds=0.5)
    fault = fault_of(worker)
    assert (fault.kind, fault.why) == ("stalled", "no result within 0.5 s")
    started = psutil.Process(worker.pid).children()
    worker.close()
    assert len(started) == 1
    assert not psutil.pid_exists(worker.pid)
    gone, _ = psutil.wait_procs(started, 60)
    assert gone


@pytest.mark.parametrize(
    "leak",
    [
        "kept.append(bytes(32 << 20))",
        "kept.append(pa.allocate_buffer(32 << 20)); memoryview(kept[-1]).cast('B')[0]",
    ],
)
def test_one_that_leaks_ends_at_its_bound(start: Start, leak: str) -> None:
    text = f"import pyarrow as pa\nkept = []\ndef transform(b):\n {leak}\n return b"
    worker = start(text, memory_bytes_max=128 * MIB)
    worker.wait_ready()
    fault = None
    for _ in range(100):
        try:
            worker.call(BATCH)
        except FunctionFault as raised:
            fault = raised
            break
    assert fault is not None and fault.kind in ("memory", "died") and fault.ends_worker


def test_a_result_that_is_too_large_is_refused(start: Start) -> None:
    text = (
        "import pyarrow as pa\n"
        "def transform(b): return pa.table({'topic': ['a'] * 70, 'payload': [bytes(1 << 20)] * 70})"
    )
    fault = fault_of(start(text, memory_bytes_max=2048 * MIB))
    assert fault.kind == "died" and "at most" in fault.why


def test_one_that_cannot_be_loaded_says_why(start: Start) -> None:
    for text, words in (("1 / 0", "ZeroDivisionError"), ("x = 1", "has no transform"), ("def f(:", "SyntaxError")):
        with pytest.raises(FunctionFault, match=words) as raised:
            start(text).wait_ready()
        assert raised.value.kind == "load"


def test_it_ends_with_its_parent(start: Start, tmp_path: Path) -> None:
    """kill -9 of the function process, while the function is busy."""
    pid = os.fork()
    if pid == 0:
        worker = start("import time\ndef transform(b): time.sleep(600)")
        worker.wait_ready()
        (tmp_path / "pid").write_text(str(worker.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    found = int((tmp_path / "pid").read_text())
    if psutil.pid_exists(found):
        psutil.wait_procs([psutil.Process(found)], 60)
    assert not psutil.pid_exists(found) or psutil.Process(found).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def transform(b): return b", None),
        ("def transform(b): return None", "called with a batch without rows: it returned NoneType"),
        ("def transform(b): return b.drop_columns(['topic'])", "no column 'topic'"),
        ("def transform(): pass", "does not take one batch"),
    ],
)
def test_a_trial_says_what_is_wrong(text: str, words: str | None, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(text)
    found = maybe_fault(FunctionRules("f", ("#",), str(tmp_path / "f.py"), "f/", 60.0))
    assert found is None if words is None else words in (found or "")
