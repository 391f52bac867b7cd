"""Health: this process lives, the broker has started, the broker is ready. docs/reference/gateway.md, "Health"."""

from __future__ import annotations

from collections.abc import Callable

import trio
from starlette.requests import Request
from starlette.responses import Response

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.operations import OPERATIONS
from rumq.errors import RumqError
from rumq.gateway.broker.shard_client import ShardQueries
from rumq.gateway.contract.endpoints import Health
from rumq.gateway.http.requests import as_json

REMEMBER_SECONDS = 0.5  # so long an answer counts: probes cost the shards no more than two questions a second
ANSWER_SECONDS_MAX = 0.8  # a probe has an answer within a second, whatever the shards do


class HealthHandler:
    def __init__(self, shards: ShardQueries, now: Callable[[], float]) -> None:
        """now: monotonic seconds"""
        self._shards, self._now = shards, now
        self._has_started = False
        self._why = "not asked yet"
        self._asked_at = float("-inf")
        self._asking = trio.Lock()

    async def healthz(self, request: Request) -> Response:
        return as_json(Health(ok=True))

    async def readyz(self, request: Request) -> Response:
        why = await self.problem()
        return as_json(Health(ok=not why, why=why), 503 if why else 200)

    async def startupz(self, request: Request) -> Response:
        if not self._has_started:
            await self.problem()
        why = "" if self._has_started else self._why
        return as_json(Health(ok=not why, why=why), 503 if why else 200)

    async def problem(self) -> str:
        """Why the broker is not ready; empty: it is."""
        with trio.move_on_after(ANSWER_SECONDS_MAX):
            async with self._asking:  # who comes meanwhile gets the same
                if self._now() - self._asked_at >= REMEMBER_SECONDS:
                    self._why = f"the broker has not answered within {ANSWER_SECONDS_MAX} s"
                    try:
                        self._why = await self._ask()
                    finally:
                        self._asked_at = self._now()
                return self._why
        return f"the broker has not answered within {ANSWER_SECONDS_MAX} s"

    async def _ask(self) -> str:
        try:
            # In a cluster what this node itself serves: others have probes of their own.
            found = await self._shards.ask_here(OPERATIONS["shards"], q.Nothing())
        except (RumqError, ValueError) as fault:
            return str(fault)
        assert isinstance(found, a.Shards)
        self._has_started |= all(each.ready for each in found.shards)
        for each in found.shards:
            if not each.ready:
                return f"shard {each.shard} recovers its sessions"
            if not each.accepting:
                return f"shard {each.shard} refuses messages: its disk is full, or fails"
            if each.draining:
                return "the broker is being drained"
        cluster = await self._shards.maybe_cluster()
        if cluster is None:
            return ""
        if any(each.leaves for each in cluster.nodes if each.node == cluster.node):
            return "the node is drained (rumqd cluster drain)"
        if cluster.shards and not any(each.members for each in cluster.shards):
            return "the cluster has not begun (rumqd cluster status)"
        return "" if cluster.is_current else await self._cut_off()

    async def _cut_off(self) -> str:
        """While the control plane is silent: whether this node still reaches the leaders that its clients need.

        Without it leaders go on: a balancer must not turn all nodes away because etcd is down."""
        why = "the control plane does not answer"
        try:
            found = await self._shards.ask(OPERATIONS["shards"], q.Nothing())
        except (RumqError, ValueError) as fault:
            return f"{why}, and {fault}"
        assert isinstance(found, a.Shards)
        if not found.missing:
            return ""
        return f"{why}, and the leaders of shards {', '.join(str(each.shard) for each in found.missing)} neither"
