"""The client of an admin socket: a JSON line there, a JSON line back. For the command line and the gateway.

`rumq.admin.socket.admin_socket` is the other side."""

from __future__ import annotations

import trio

from rumq.unix_address import Address

SECONDS_MAX = 10.0
READ_BYTES = 1 << 18


def socket_name(shard: int) -> str:
    """Of a shard's admin socket, in the data directory."""
    return "ask.sock" if shard == 0 else f"ask-{shard}.sock"


async def ask_socket(directory: str, name: str, line: bytes, seconds: float = SECONDS_MAX) -> bytes:
    """Send a line to a socket in a directory; returns the line that comes back.

    raises: OSError; of it TimeoutError when nothing comes in time, ConnectionResetError when the other side has closed
    the connection without an answer"""
    got = bytearray()
    try:
        # Not trio.open_unix_socket, whose errors have no errno.
        sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        with sock, trio.fail_after(seconds), Address(f"{directory}/{name}") as path:
            await sock.connect(path)
            stream = trio.SocketStream(sock)
            await stream.send_all(line)
            while not got.endswith(b"\n") and (more := await stream.receive_some(READ_BYTES)):
                got += more
    except trio.TooSlowError:
        raise TimeoutError(f"no answer within {seconds:.0f} s") from None
    except trio.BrokenResourceError:
        raise ConnectionResetError("it closed the connection") from None
    if not got.endswith(b"\n"):
        raise ConnectionResetError("it closed the connection")
    return bytes(got)
