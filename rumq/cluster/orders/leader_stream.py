"""A connection of the agent's process to the leader of a shard on another node, with mutual TLS where nodes have it."""

from __future__ import annotations

import errno
import ssl
from dataclasses import dataclass

import trio

from rumq.cluster.control.leaders import LeaderAddress
from rumq.cluster.links.node_names import NodeNames, uris_of

CONNECT_SECONDS_MAX = 2.0


@dataclass(slots=True)
class AgentTls:
    """context: of connections that the agent dials from now on; names: what the others' certificates must say"""

    context: ssl.SSLContext
    names: NodeNames


async def leader_stream(leader: LeaderAddress, tls: AgentTls | None) -> trio.abc.Stream:
    """tls: None for plain bytes. raises: OSError, trio.BrokenResourceError, trio.TooSlowError"""
    with trio.fail_after(CONNECT_SECONDS_MAX):
        stream = await trio.open_tcp_stream(leader.host, leader.port)
        if tls is None:
            return stream
        secure: trio.SSLStream[trio.SocketStream] = trio.SSLStream(stream, tls.context, https_compatible=True)
        try:
            await secure.do_handshake()
            if problem := tls.names.maybe_problem(uris_of(secure.getpeercert()), leader.node):
                raise OSError(errno.EPROTO, problem)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secure
