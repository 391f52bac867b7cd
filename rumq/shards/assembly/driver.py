"""Assembly of what drives a shard: its turn, and the pump that begins and ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rumq.shards.admin.traced_publishers import TracedPublishers
from rumq.shards.assembly.base import Base
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.turn.turn import BatchAppender, Stages, Steps, Turn
from rumq.tracing.chance import Chance
from rumq.tracing.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Driver:
    """pump: as the platform makes it"""

    turn: Turn
    pump: Any
    tracer: Tracer


def build_driver(base: Base, sessions: SessionParts) -> Driver:
    platform, context = base.platform, base.context
    publishers = TracedPublishers(base.store, sessions.acks, sessions.registry)
    tracer = Tracer(context.index, publishers.find, lambda: platform.clock()[0], Chance(platform.random))
    appender = BatchAppender(base.gathered, base.clock, base.store, base.totals, tracer)
    appender.trace(context.trace_sample_every, context.traces_per_second_max)
    steps = Steps(base.gathered, appender, base.router, base.timers, base.events, sessions.acks)
    turn = Turn(
        base.clock, base.timers, base.events, base.router, base.gathered, appender, steps,
        Stages(platform.stage_seconds),
    )  # fmt: skip
    pump = platform.pump(turn)
    for worker in base.workers:
        pump.watch(worker.fd, worker.finish)
    return Driver(turn, pump, tracer)
