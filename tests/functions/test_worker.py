"""The worker's side: an answer for every call, and a bound on memory from where it stands."""

import os
import resource

import pyarrow as pa
import pytest

from rumq.functions.function_rows import SCHEMA, as_batch, as_bytes
from rumq.functions.worker import answer, bound_memory
from rumq.functions.worker_protocol import NO_MEMORY, RAISED, RESULT, WRONG, WorkerMessage, WorkerMessageReader

BATCH = pa.RecordBatch.from_pylist([{"topic": "plant/7", "payload": b"21.5"}], SCHEMA)


def answered(function: object) -> WorkerMessage:
    reader = WorkerMessageReader(1 << 20)
    reader.add(answer(function, as_bytes(BATCH)))  # type: ignore[arg-type]
    message = reader.maybe_message()
    assert message is not None
    return message


def raises(fault: BaseException) -> object:
    def function(_: object) -> object:
        raise fault

    return function


def test_a_result_is_a_batch_of_messages() -> None:
    message = answered(lambda batch: batch)
    assert message.kind == RESULT and as_batch(message.body).column("topic").to_pylist() == ["plant/7"]


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (lambda batch: 7, WRONG, "it returned int"),
        (raises(ValueError("two\nlines")), RAISED, "lines"),
        (raises(KeyError("x")), RAISED, "KeyError: 'x'"),
        (raises(MemoryError()), NO_MEMORY, "MemoryError"),
        (raises(pa.ArrowMemoryError("malloc failed")), NO_MEMORY, "malloc failed"),
    ],
)
def test_what_it_raises_is_a_line(function: object, kind: bytes, words: str) -> None:
    message = answered(function)
    assert message.kind == kind and words in message.sentence and "\n" not in message.sentence


def test_the_bound_is_behind_what_is_there_already() -> None:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            bound_memory(64 << 20)
            bytearray(16 << 20)
            try:
                bytearray(128 << 20)
            except MemoryError:
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY, "of that process alone"
