"""The counter where a broker is asked: a Unix socket in its data directory, a JSON line in, a JSON line out.

Only who may enter the data directory can ask. Ordinary trio code beside the pump; knows no question itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import trio

NAME = "ask.sock"
LINE_BYTES_MAX = 1 << 16
SECONDS_MAX = 10.0


async def serve(directory: str, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer until cancelled. A path too long for a socket (107 bytes) is opened from within the directory."""
    path = f"{directory}/{NAME}"
    if os.path.exists(path):
        os.unlink(path)  # of a broker that was killed: the directory's lock is ours
    sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        await sock.bind(reachable(directory))
        os.chmod(path, 0o600)
        sock.listen(16)
        await trio.serve_listeners(partial(one, answer), [trio.SocketListener(sock)])
    finally:
        sock.close()
        if os.path.exists(path):
            os.unlink(path)


def reachable(directory: str) -> str:
    """The socket's path, by way of a descriptor of its directory: a socket address holds 107 bytes."""
    path = f"{directory}/{NAME}"
    if len(path.encode()) <= 107:
        return path
    return f"/proc/self/fd/{os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)}/{NAME}"


async def one(answer: Callable[[dict[str, Any]], dict[str, Any]], stream: trio.abc.Stream) -> None:
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
            try:
                said = msgspec.json.decode(line, type=dict[str, Any])
                reply = answer(said)
            except ValueError as fault:  # the asker's: what was said cannot be read or answered
                reply = {"error": str(fault)}
            try:
                await stream.send_all(msgspec.json.encode(reply) + b"\n")
            except trio.BrokenResourceError:
                return


def ask(directory: str, question: dict[str, Any]) -> dict[str, Any]:
    """Ask the broker that holds `directory`; OSError when none answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(SECONDS_MAX)
        sock.connect(reachable(os.path.abspath(directory)))
        sock.sendall(msgspec.json.encode(question) + b"\n")
        got = bytearray()
        while not got.endswith(b"\n") and (more := sock.recv(1 << 16)):
            got += more
    reply: dict[str, Any] = msgspec.json.decode(got)
    return reply
