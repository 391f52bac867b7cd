"""Clients on their way in: authentication beside the loop, room for them, the shard that they belong to."""
# compiled: warm

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from rumq.auth.identity import Work
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.ports import Clock
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.net.client_placement import ClientPlacement
from rumq.net.pending_logins import LoginStage
from rumq.session.connection.broker_port import ClientInfo
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.clients.access_gate import AccessGate
from rumq.shards.clients.auth_pool import AuthPool

UNCHECKED = ("anonymous", "unverified")


class Logins:
    """connections_max: by the listener's number; a listener without one has no bound"""

    def __init__(
        self, pool: AuthPool, pump: Any, placement: ClientPlacement, clock: Clock, events: ShardEvents,
        gate: AccessGate, totals: ShardTotals,
    ) -> None:  # fmt: skip
        """gate: of the operator, who may refuse clients"""
        self._pool, self._pump, self._placement = pool, pump, placement
        self._clock, self._events = clock, events
        self.gate, self._totals = gate, totals
        self.connections_max: dict[int, int] = {}
        self._turned_away = 0

    def enter(self, transport: Any) -> None:
        """A connection is here that has not logged in."""
        self._pump.pending_logins.add(transport)

    def check(self, client: ClientInfo, work: Work, done: Callable[[Any, BaseException | None], None]) -> bool:
        def guarded(result: Any, fault: BaseException | None) -> None:
            try:
                done(result, fault)
            except Exception:
                self._events.crashed(client.transport)

        return self._pool.submit(
            client.address, work, guarded, user=client.claimed_name, is_here=lambda: not client.closed
        )

    def delay_refusal(self, client: ClientInfo, answer: Callable[[], None]) -> None:
        self._pool.delay_refusal(client.address, self._clock.monotonic, answer, user=client.claimed_name)

    def has_room(self, client: ClientInfo) -> bool:
        limit = self.connections_max.get(client.policy.index)
        if limit is None or len(self._pump.connections) - len(self._pump.pending_logins) < limit:
            return True
        self._turned_away += 1
        if self._turned_away & (self._turned_away - 1) == 0:  # the 1st, 2nd, 4th, 8th: told, not flooded
            self._events.tell("listener.overloaded", connections=limit, turned_away=self._turned_away)
        return False

    def login_refusal(self, client: ClientInfo, client_id: str, user: str | None) -> MqttFault | None:
        if client.policy.is_removed:
            return MqttFault("this listener was removed", Reason.SERVER_UNAVAILABLE)
        if self.gate.lets_everybody_in:
            return None
        return self.gate.refusal(client_id, user, client.address)

    def logged_in(self, client: ClientInfo) -> None:
        if client.identity is not None and client.identity.method not in UNCHECKED:
            self._pool.was_right(client.address, client.claimed_name)
        self._pump.pending_logins.discard(client.transport)

    def may_buffer(self, client: ClientInfo, size: int) -> bool:
        self._pump.pending_logins.set_state(client.transport, LoginStage.HEARD)
        return bool(self._pump.pending_logins.keep_bytes(client.transport, size))

    def set_waiting(self, client: ClientInfo, for_broker: bool) -> None:
        self._pump.pending_logins.set_state(client.transport, LoginStage.OWED if for_broker else LoginStage.HEARD)

    def assigned_client_id(self, prefix: str) -> str:
        while not self._placement.is_here(client_id := f"{prefix}{uuid.uuid4().hex[:20]}"):
            pass
        return client_id

    def hand_over(self, client: ClientInfo, client_id: str, data: bytes) -> bool:
        if client.policy.is_removed:
            return False  # it is refused here
        is_elsewhere = self._placement.hand_over(client.transport, client.policy.index, client_id, data)
        if is_elsewhere:
            self._totals.sockets -= 1  # it is welcomed there once more
        return is_elsewhere
