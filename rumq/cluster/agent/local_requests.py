"""What the processes of a node ask their agent: claims, orders, the status, to leave; and what they report.

Claims are sent once to the control plane, which chooses among them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import trio

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.agent.control_contact import ControlContact
from rumq.cluster.agent.node_membership import NodeMembership
from rumq.cluster.agent.process_ends import ProcessEnds
from rumq.cluster.agent.view_listing import ViewListing
from rumq.cluster.connections.agent_socket import AgentServer, LocalProcess
from rumq.cluster.control.agent_messages import (
    AgentMessage,
    AgentStatus,
    AskStatus,
    Claim,
    Claimed,
    DrainNode,
    KafkaAt,
    Order,
    OrderResult,
    Report,
)
from rumq.cluster.control.control_plane import ControlHealth, ControlPlane, Replaced
from rumq.cluster.control.errors import ControlRefused, OutcomeUnknown, Unreachable
from rumq.cluster.orders.order_routing import OrderRouting

SETTLE_SECONDS, SETTLE_STEP_SECONDS = 0.5, 0.05
TERMS_SECONDS_MAX = 4.0  # that an operator waits for what leaders say


class LocalRequests:
    """ask_terms: of all leaders, for operators; None: nobody can be asked"""

    def __init__(
        self, server: AgentServer, plane: ControlPlane, contact: ControlContact, membership: NodeMembership,
        views: ViewListing, orders: OrderRouting,
    ) -> None:  # fmt: skip
        self._server, self._plane, self._contact = server, plane, contact
        self._membership, self._views, self._orders = membership, views, orders
        self._reports: dict[int, Report] = {}  # the last one of each shard that runs here
        self._ends = ProcessEnds()
        self._kafka: LocalProcess | None = None  # the Kafka server that said last where it is
        self.ask_terms: Callable[[], Awaitable[list[TermRow]]] | None = None

    def process_gone(self, process: LocalProcess) -> None:
        shard = process.here.shard
        if process.here.role == "shard":
            self._ends.note(shard, trio.current_time())
            if self._server.maybe_shard(shard) is None:
                self._reports.pop(shard, None)
        elif process is self._kafka:
            self._kafka = None
            self._membership.say_kafka("")
        self._orders.gone(process)

    def heard(self, process: LocalProcess, message: AgentMessage, nursery: trio.Nursery) -> None:
        """nursery: of what takes time"""
        if isinstance(message, Report):
            self._reports[message.shard] = message
        elif isinstance(message, Claim):
            nursery.start_soon(self._claim, process, message)
        elif isinstance(message, Order):
            self._orders.order(process, message, self._views.view, nursery)
        elif isinstance(message, OrderResult):
            self._orders.done(process, message)
        elif isinstance(message, KafkaAt):
            self._kafka = process
            self._membership.say_kafka(message.address)
        elif isinstance(message, AskStatus):
            nursery.start_soon(self._say_status, process, message)
        elif isinstance(message, DrainNode):
            why = self._membership.drain(leaves=message.leaves) if not message.node else ""
            if why:
                process.send(OrderResult(message.request, why))
            elif message.node or not message.leaves:
                nursery.start_soon(self._note_removed, process, message)
            else:
                process.send(OrderResult(message.request))

    async def _claim(self, process: LocalProcess, claim: Claim) -> None:
        """Sent once. Without an answer it is settled for a while; later views tell what became of it."""
        if not self._views.may_claim(claim.shard, claim.record.epoch):
            process.send(Claimed(claim.request, won=False, known=True, now=None))
            return
        done, is_known = Replaced(False, None), True
        try:
            done = await self._views.replace(claim.shard, claim.revision, claim.record)
        except OutcomeUnknown as fault:
            self._contact.failed(fault)
            settled = await self._maybe_settle(claim)
            done, is_known = settled or done, settled is not None
        except (Unreachable, ControlRefused) as fault:
            self._contact.failed(fault)
        process.send(Claimed(claim.request, won=done.won, known=is_known, now=done.now))

    async def _note_removed(self, process: LocalProcess, leave: DrainNode) -> None:
        """Of any node, also one that is gone. An empty name: this one takes part again."""
        why = ""
        try:
            await self._plane.note_removed(leave.node or self._membership.identity.id, is_removed=leave.leaves)
        except (Unreachable, OutcomeUnknown, ControlRefused) as fault:
            self._contact.failed(fault)
            why = str(fault)
        process.send(OrderResult(leave.request, why))
        self._views.list_soon()

    async def _maybe_settle(self, claim: Claim) -> Replaced | None:
        with trio.move_on_after(SETTLE_SECONDS):
            while True:
                await trio.sleep(SETTLE_STEP_SECONDS)
                try:
                    done = await self._plane.settle(claim.shard, claim.revision, claim.record.claim)
                except (OutcomeUnknown, Unreachable):
                    continue
                self._views.put(claim.shard, done.now)
                return done
        return None

    async def _say_status(self, process: LocalProcess, asked: AskStatus) -> None:
        terms: list[TermRow] | None = None
        if self.ask_terms is not None:
            with trio.move_on_after(TERMS_SECONDS_MAX):
                terms = await self.ask_terms()
        status = self.status(await self._plane.health(), asked.request)
        process.send(msgspec.structs.replace(status, terms=terms))

    def status(self, health: ControlHealth, request: int = 0) -> AgentStatus:
        """What this agent knows now."""
        return AgentStatus(
            request=request,
            view=self._views.view,
            reports=[report for _, report in sorted(self._reports.items())],
            processes=[each.here for each in self._server.processes],
            health=health,
            lost_seconds=self._contact.lost_seconds,
            requests=self._plane.requests,
            ends=self._ends.within_a_minute(trio.current_time()),
        )
