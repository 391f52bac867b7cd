"""The agent's process: what a forked child runs until SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from rumq.cluster.agent.agent import Agent
from rumq.cluster.agent.agent_settings import AgentSettings, control_plane
from rumq.cluster.agent.node_identity import node_identity
from rumq.cluster.control.errors import ControlError
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.events.output import get_logger

STOPPED, REFUSED = 0, 2  # exit statuses; a supervisor does not start one again that was refused

log = get_logger("rumq.cluster")


def serve_agent(
    settings: AgentSettings, ready: Callable[[], None] = lambda: None,
    beside: Callable[[Agent], Awaitable[object]] | None = None, tls: AgentTls | None = None,
) -> int:  # fmt: skip
    """Serve until SIGTERM or SIGINT. ready: called when there is a first view; beside: runs as long as the agent

    tls: of connections to other nodes, None for plain bytes
    returns: an exit status"""
    status = STOPPED
    try:
        data = Path(settings.data)
        identity = node_identity(data, settings.cluster, settings.node, has_log=settings.has_log)
        agent = Agent(settings, identity, control_plane(settings), ready=ready, tls=tls)
        trio.run(_until_signal, agent, beside)
    except* ControlError as faults:
        log.error("cluster.refused", why=str(first_of(faults)))
        status = REFUSED
    return status


async def _until_signal(agent: Agent, beside: Callable[[Agent], Awaitable[object]] | None) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            await nursery.start(agent.run)
            if beside is not None:
                nursery.start_soon(beside, agent)
            async for _ in signals:
                break
            nursery.cancel_scope.cancel()


def first_of(group: BaseExceptionGroup[ControlError]) -> BaseException:
    """The first exception in a group of groups."""
    fault: BaseException = group
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault
