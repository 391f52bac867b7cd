"""Questions to a broker's admin sockets, from tests that do not run a loop."""

import os
from typing import Any

import msgspec
import trio

from rumq.admin.socket.admin_client import ask_socket, socket_name

Reply = dict[str, Any]


def ask_one(directory: str, name: str, question: Reply) -> Reply:
    """One socket of a data directory. raises: OSError"""
    line = trio.run(ask_socket, os.path.abspath(directory), name, msgspec.json.encode(question) + b"\n")
    return msgspec.json.decode(line, type=Reply)


def ask(directory: str, question: Reply) -> Reply:
    """Every shard; numbers are added, lists joined, an error is an error. raises: OSError, where none answers"""
    names = sorted(name for name in os.listdir(directory) if name.startswith("ask") and name.endswith(".sock"))
    replies, fault = list[Reply](), OSError()
    for name in names or [socket_name(0)]:
        try:
            replies.append(ask_one(directory, name, question))
        except ConnectionRefusedError as refused:  # left by a broker that was killed
            fault = refused
    if not replies:
        raise fault
    total = Reply()
    for reply in replies:
        for name, value in reply.items():
            total[name] = value if name == "error" or name not in total else total[name] + value
    return total
