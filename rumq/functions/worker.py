"""The worker: a process that has one function, and calls it for each batch that comes. It dies alone.

It bounds its own memory once the function is loaded, and ends with its parent. Knows no broker."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from rumq.functions.worker_protocol import (
    CALL,
    NO_MEMORY,
    NOT_LOADED,
    RAISED,
    READY,
    RESULT,
    WRONG,
    WorkerMessageReader,
    packed,
    packed_sentence,
)

PR_SET_PDEATHSIG = 1
RECEIVE_BYTES = 2**18
REQUEST_BYTES_MAX = 2**30
NICE = 10  # the broker has priority


def bound_memory(bytes_max: int) -> None:
    """Let the address space grow by so much from here on."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes_max, used + bytes_max))


def answer(function: Callable[[Any], Any], data: bytes) -> bytes:
    """Call it; what it raises becomes a sentence."""
    from rumq.functions.function_rows import WrongResult, as_batch, as_bytes, messages_of

    try:
        return packed(RESULT, as_bytes(messages_of(function(as_batch(data)))))
    except WrongResult as fault:
        return packed_sentence(WRONG, str(fault))
    except MemoryError as fault:  # Arrow's is one, too
        return packed_sentence(NO_MEMORY, f"MemoryError: {fault}")
    except Exception as fault:
        return packed_sentence(RAISED, "".join(traceback.format_exception_only(fault)))


def serve(sock: socket.socket, function: Callable[[Any], Any]) -> None:
    """Until the other end is closed."""
    reader = WorkerMessageReader(REQUEST_BYTES_MAX)
    while data := sock.recv(RECEIVE_BYTES):
        reader.add(data)
        while (message := reader.maybe_message()) is not None:
            assert message.kind == CALL
            sock.sendall(answer(function, message.body))


def main(fd: int, code: str, memory_bytes_max: int) -> None:
    """fd: a socket to the parent"""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sock = socket.socket(fileno=fd)
    try:
        from rumq.functions.function_code import load_function
        from rumq.functions.function_rows import no_rows

        function = load_function(code)
        no_rows()  # Arrow is loaded, too
    except BaseException as fault:
        sock.sendall(packed_sentence(NOT_LOADED, "".join(traceback.format_exception_only(fault))))
        sys.exit(1)
    bound_memory(memory_bytes_max)
    sock.sendall(packed(READY, b""))
    with contextlib.suppress(ConnectionError):
        serve(sock, function)
    os._exit(0)  # whatever threads the function has begun
