"""A connection of the agent's process to the leader of a shard on another node, with mutual TLS where nodes have it."""

from __future__ import annotations

import ssl

import trio

from rumq.cluster.connections.leaders import Leader

CONNECT_SECONDS_MAX = 2.0


async def leader_stream(leader: Leader, tls: ssl.SSLContext | None) -> trio.abc.Stream:
    """tls: None for plain bytes. raises: OSError, trio.BrokenResourceError, trio.TooSlowError"""
    with trio.fail_after(CONNECT_SECONDS_MAX):
        stream = await trio.open_tcp_stream(leader.host, leader.port)
        if tls is None:
            return stream
        secure: trio.SSLStream[trio.SocketStream] = trio.SSLStream(stream, tls, https_compatible=True)
        try:
            await secure.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secure
