"""The socket that `rumqd ask` uses: a Unix socket in the data directory, a JSON line in, a JSON line out.

The permissions of the data directory decide who may ask. `rumq.shards.admin.questions` answers. A node of a
cluster has one more, for the whole cluster: `rumq.admin.node_answer`."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import trio

NAME = "ask.sock"
LINE_BYTES_MAX = 1 << 16
SECONDS_MAX = 10.0
PATH_BYTES_MAX = 107
Reply = dict[str, Any]
Later = Callable[[Callable[[Reply], None]], None]
Answerer = Callable[[Reply], Any]
"""Takes a question; gives what to say, or what will call back with it."""


async def serve(
    directory: str, answer: Callable[[dict[str, Any]], Any], name: str = NAME,
    failed: Callable[[str], None] = lambda task: None, *,
    task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED,
) -> None:  # fmt: skip
    """Answer until cancelled; it has started once it can be asked. A path too long for a socket (107 bytes) is opened
    from within the directory.

    answer: gives what to say, or what will call back with it, on the same thread
    failed: told of an answer that raises; it ends nothing but the question"""
    path = f"{directory}/{name}"
    if os.path.exists(path):
        os.unlink(path)  # of a broker that was killed: the directory's lock is ours
    sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with reachable(directory, name) as address:
            await sock.bind(address)
        os.chmod(path, 0o600)
        sock.listen(16)
        await trio.serve_listeners(partial(one, answer, failed), [trio.SocketListener(sock)], task_status=task_status)
    finally:
        sock.close()
        if os.path.exists(path):
            os.unlink(path)


@contextmanager
def reachable(directory: str, name: str = NAME) -> Iterator[str]:
    """The socket's path, while it is used; a longer one by way of a descriptor of its directory.

    A socket address holds 107 bytes"""
    path = f"{directory}/{name}"
    if len(path.encode()) <= PATH_BYTES_MAX:
        yield path
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


async def one(answer: Callable[[dict[str, Any]], Any], failed: Callable[[str], None], stream: trio.abc.Stream) -> None:
    with trio.move_on_after(SECONDS_MAX):
        async with stream:
            line = bytearray()
            while b"\n" not in line and len(line) < LINE_BYTES_MAX:
                try:
                    more = await stream.receive_some(4096)
                except trio.BrokenResourceError:
                    return
                if not more:
                    return
                line += more
            reply = answered(answer, failed, line)
            if callable(reply):
                reply = await called_back(reply, failed)
            try:
                await stream.send_all(line_of(reply, failed))
            except trio.BrokenResourceError:
                return


def answered(answer: Answerer, failed: Callable[[str], None], line: bytes | bytearray) -> Reply | Later:
    """The answer to a line, or what will call back with it; a fault is an answer, too."""
    try:
        found: Reply | Later = answer(msgspec.json.decode(line, type=Reply))
        return found
    except Exception as fault:
        return told(fault, failed)


def begin(later: Later, done: Callable[[Reply], None], failed: Callable[[str], None]) -> None:
    """Have an answer called back with, now or in a later turn; a fault is an answer, too."""
    try:
        later(done)
    except Exception as fault:
        done(told(fault, failed))


def told(fault: Exception, failed: Callable[[str], None]) -> Reply:
    """Called where the fault is handled."""
    if isinstance(fault, ValueError):  # the asker's: what was said cannot be read or answered
        return {"error": str(fault)}
    return our_fault(fault, failed)


def line_of(reply: Reply, failed: Callable[[str], None]) -> bytes:
    """What is said back."""
    try:
        return msgspec.json.encode(reply) + b"\n"
    except Exception as fault:  # ours
        return msgspec.json.encode(our_fault(fault, failed)) + b"\n"


def our_fault(fault: Exception, failed: Callable[[str], None]) -> Reply:
    """Called where the fault is handled."""
    failed("answer")
    return {"error": f"the broker failed to answer: {type(fault).__name__}"}


async def called_back(later: Later, failed: Callable[[str], None]) -> Reply:
    """What a callback is given, which comes out of the pump's loop, not out of a task."""
    token, come = trio.lowlevel.current_trio_token(), trio.Event()
    replies: list[Reply] = []

    def done(reply: Reply) -> None:
        replies.append(reply)
        token.run_sync_soon(come.set)

    begin(later, done, failed)
    await come.wait()
    return replies[0]


def ask(directory: str, question: Reply) -> Reply:
    """Ask every shard of the broker that holds `directory`, and add up what they say; OSError when none answers."""
    directory = os.path.abspath(directory)
    names = sorted(name for name in os.listdir(directory) if name.startswith("ask") and name.endswith(".sock"))
    replies = []
    for name in names or [NAME]:
        try:
            replies.append(ask_one(directory, name, question))
        except ConnectionRefusedError:
            if not replies and name == (names or [NAME])[-1]:
                raise  # left by a broker that was killed
    return added_up(replies)


def ask_one(directory: str, name: str, question: Reply) -> Reply:
    """One shard. raises: OSError"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS_MAX)
        with reachable(directory, name) as address:
            sock.connect(address)
        sock.sendall(msgspec.json.encode(question) + b"\n")
        got = bytearray()
        while not got.endswith(b"\n") and (more := sock.recv(1 << 16)):
            got += more
    reply: Reply = msgspec.json.decode(got)
    return reply


def added_up(replies: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers are added, lists joined; an error is an error."""
    total: dict[str, Any] = {}
    for reply in replies:
        for name, value in reply.items():
            if name == "error" or name not in total:
                total[name] = value
            else:
                total[name] = total[name] + value
    return total
