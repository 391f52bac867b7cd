"""The shutdown of a shard, in phases, each reported and bounded in time."""

from __future__ import annotations

from collections.abc import Callable

import trio

from rumq.events.event_log import tell
from rumq.mqtt.reasons import Reason
from rumq.net.listening.listener import Acceptor
from rumq.net.pump import Pump
from rumq.shards.assembly.shard import Shard

STOP_SECONDS_MAX = 30.0
LINGER_SECONDS_MAX = 0.25  # for clients that do not close their side


async def stop(shard: Shard, listeners: list[Acceptor]) -> None:
    """Stop accepting, disconnect every client, and write what they sent, here and in other shards. The caller seals the
    log."""
    pump, commit, peers = shard.pump, shard.writing.commit, shard.cluster.peers
    shard.lifecycle.stop_phase = 1
    for listener in listeners:
        listener.close()
    tell("broker.stop_phase", phase="no new connections", clients=clients(pump))
    life = shard.lifecycle
    life.stop_phase = 2
    for connection in list(pump.connections.values()):
        if not connection.link.is_bus:
            connection.link.dismiss(Reason.SERVER_SHUTTING_DOWN, "the broker is stopping")
    commit.is_draining = True
    await phase("clients told", lambda: not clients(pump), pump)
    with trio.move_on_after(LINGER_SECONDS_MAX):
        # Let clients that are still writing read the reason: a process that exits resets its sockets.
        while pump.lingering:
            await trio.sleep(0.005)
    life.stop_phase = 3
    await phase("log written", commit.idle, pump)
    life.stop_phase = 4
    peers.drain()
    await phase("shards drained", lambda: peers.are_drained and commit.idle(), pump)
    life.stop_phase = 5
    peers.close()
    for partition, size in commit.unwritten():
        tell("log.unwritten", stream=partition.stream, partition=partition.number, bytes=size)


def clients(pump: Pump) -> int:
    """Number of connected clients."""
    return sum(not connection.link.is_bus for connection in pump.connections.values())


async def phase(name: str, is_over: Callable[[], bool], pump: Pump) -> None:
    """Wait for the end of one phase, at most `STOP_SECONDS_MAX`."""
    with trio.move_on_after(STOP_SECONDS_MAX):
        while not is_over():
            await trio.sleep(0.005)
    tell("broker.stop_phase", phase=name, clients=clients(pump))
