"""The socket that `rumqd ask` uses: a Unix socket in the data directory, a JSON line in, a JSON line out.

The permissions of the data directory decide who may ask. `rumq.shards.admin.questions` answers. A node of a
cluster has one more, for the whole cluster: `rumq.admin.node_answer`."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import trio

from rumq.unix_address import Address

NAME = "ask.sock"
LINE_BYTES_MAX = 1 << 16
SECONDS_MAX = 10.0
Reply = dict[str, Any]
Later = Callable[[Callable[[Reply], None]], None]
Answerer = Callable[[Reply], Any]
"""Takes a question; gives what to say, or what will call back with it."""


async def serve(
    directory: str, answer: Callable[[dict[str, Any]], Any], name: str = NAME,
    failed: Callable[[str], None] = lambda task: None, *, bytes_max: int = LINE_BYTES_MAX,
    task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED,
) -> None:  # fmt: skip
    """Answer until cancelled; it has started once it can be asked.

    answer: gives what to say, or what will call back with it, on the same thread
    failed: told of an answer that raises; it ends nothing but the question; bytes_max: of a question"""
    path = f"{directory}/{name}"
    if os.path.exists(path):
        os.unlink(path)  # of a broker that was killed: the directory's lock is ours
    sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with Address(path) as address:
            await sock.bind(address)
        os.chmod(path, 0o600)
        sock.listen(16)
        await trio.serve_listeners(
            partial(serve_question, answer, failed, bytes_max=bytes_max),
            [trio.SocketListener(sock)],
            task_status=task_status,
        )
    finally:
        sock.close()
        if os.path.exists(path):
            os.unlink(path)


async def serve_question(
    answer: Callable[[dict[str, Any]], Any], failed: Callable[[str], None], stream: trio.abc.Stream,
    bytes_max: int = LINE_BYTES_MAX,
) -> None:  # fmt: skip
    """Read the one line of a connection, answer it, and close."""
    with trio.move_on_after(SECONDS_MAX):
        async with stream:
            line = bytearray()
            while b"\n" not in line and len(line) < bytes_max:
                try:
                    more = await stream.receive_some(4096)
                except trio.BrokenResourceError:
                    return
                if not more:
                    return
                line += more
            reply = answer_line(answer, failed, line)
            if callable(reply):
                reply = await await_callback(reply, failed)
            try:
                await stream.send_all(encode_reply(reply, failed))
            except trio.BrokenResourceError:
                return


def answer_line(answer: Answerer, failed: Callable[[str], None], line: bytes | bytearray) -> Reply | Later:
    """The answer to a line, or what will call back with it; a fault is an answer, too."""
    try:
        found: Reply | Later = answer(msgspec.json.decode(line, type=Reply))
        return found
    except Exception as fault:
        return error_reply(fault, failed)


def start_callback(later: Later, done: Callable[[Reply], None], failed: Callable[[str], None]) -> None:
    """Have an answer called back with, now or in a later turn; a fault is an answer, too."""
    try:
        later(done)
    except Exception as fault:
        done(error_reply(fault, failed))


def error_reply(fault: Exception, failed: Callable[[str], None]) -> Reply:
    """Call it where the fault is handled. failed: told of what is no fault of the asker"""
    if isinstance(fault, ValueError):  # the asker's: what was said cannot be read or answered
        return {"error": str(fault)}
    return internal_error(fault, failed)


def encode_reply(reply: Reply, failed: Callable[[str], None]) -> bytes:
    """A reply as a line; a fault of the broker if it cannot be encoded."""
    try:
        return msgspec.json.encode(reply) + b"\n"
    except Exception as fault:  # ours
        return msgspec.json.encode(internal_error(fault, failed)) + b"\n"


def internal_error(fault: Exception, failed: Callable[[str], None]) -> Reply:
    """Call it where the fault is handled."""
    failed("answer")
    return {"error": f"the broker failed to answer: {type(fault).__name__}"}


async def await_callback(later: Later, failed: Callable[[str], None]) -> Reply:
    """Wait for the reply that a callback gets. It is called by the pump's loop, not by a task."""
    token, come = trio.lowlevel.current_trio_token(), trio.Event()
    replies: list[Reply] = []

    def done(reply: Reply) -> None:
        replies.append(reply)
        token.run_sync_soon(come.set)

    start_callback(later, done, failed)
    await come.wait()
    return replies[0]
