"""The broker as one client's connection sees it: `BrokerPort`, put together from the parts of the shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rumq.session.connection.broker_port import ClientInfo
from rumq.session.connection.listener_policy import OPEN, ListenerPolicy
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.flow_control.limits import Limits
from rumq.session.handshake.handshake import Handshake
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.delivery.redelivery import Redelivery
from rumq.shards.recovery.undecided import Undecided
from rumq.shards.turn.logins import Logins
from rumq.shards.turn.read_gate import ReadGate
from rumq.shards.turn.turn import Turn
from rumq.shards.write_path.publish_gate import PublishGate


@dataclass(frozen=True, slots=True)
class ClientRecords:
    """What a shard knows of its clients. journal_bit: of the parts of a promise, the session journal"""

    registry: Registry
    journal: JournalRecorder
    journal_bit: int
    keep_alive: KeepAliveMonitor
    drop_counters: DropCounters
    totals: ShardTotals


class Gates(NamedTuple):
    """publish: whether messages are taken; read: where a SUBSCRIBE waits until this shard may answer it

    undecided: where a QoS 2 message waits that a missing shard may have"""

    publish: PublishGate
    read: ReadGate
    undecided: Undecided


class Interest(Protocol):
    """Filters whose records other shards send: `rumq.shards.bus.interest`."""

    def confirm_subscriptions(
        self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool
    ) -> bool: ...


class Broker:
    """welcomed: connections, so far"""

    def __init__(
        self, turn: Turn, records: ClientRecords, logins: Logins, gates: Gates, acks: AckTracker,
        redelivery: Redelivery, interest: Interest | None, limits: Limits,
    ) -> None:  # fmt: skip
        """interest: None with one shard"""
        gate, self._reads, self.undecided = gates
        self.limits = limits
        self.welcomed = 0
        self.registry, self.journal, self.journal_bit = records.registry, records.journal, records.journal_bit
        self.drop_counters, self.shard_totals = records.drop_counters, records.totals
        self.keep_alive_monitor = records.keep_alive
        self.clock, self.commands, self.batches = turn.clock, turn.commands, turn.batches
        self.settle, self.refresh = turn.settle, turn.ready.add
        self.in_next_turn = turn.ready.add_next_turn
        self.later, self.next_turn = turn.timers.later, turn.timers.next_turn
        self.event, self.crashed = turn.events.of_client, turn.events.crashed
        self.topics, self.backpressure, self.pause_publisher = (
            gate.topics,
            gate.backpressure,
            gate.pause_publisher,
        )
        self.add_topic, self.refuse_topic, self.match_topic = (
            gate.add_topic,
            gate.refuse_topic,
            gate.match_topic,
        )
        self.change_filters = gate.change_filters
        self.publisher_number, self.refuse_publish = gate.publisher_number, gate.refuse_publish
        self.promise, self.promise_messages = acks.promise, acks.promise_messages
        self.send_again = redelivery.go_on
        self.check, self.delay_refusal = logins.check, logins.delay_refusal
        self.has_room, self.logged_in = logins.has_room, logins.logged_in
        self.login_refusal = logins.login_refusal
        self.may_buffer, self.set_waiting = logins.may_buffer, logins.set_waiting
        self.assigned_client_id = logins.assigned_client_id
        self._hand_over, self._enter, self._interest = logins.hand_over, logins.enter, interest

    def welcome(self, transport: Any, policy: ListenerPolicy = OPEN) -> Handshake:
        """The protocol of a new connection."""
        handshake = Handshake(self, transport, policy)
        self.keep_alive_monitor.add(
            handshake, self.clock.monotonic + handshake.client.limits.connect_seconds_max
        )
        self._enter(transport)
        self.welcomed += 1
        self.shard_totals.sockets += 1
        return handshake

    def hand_over(self, client: ClientInfo, client_id: str, data: bytes) -> bool:
        is_elsewhere = self._hand_over(client, client_id, data)
        if is_elsewhere:
            self.shard_totals.sockets -= 1  # it is welcomed there once more
        return is_elsewhere

    def confirm(
        self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool = False
    ) -> bool:
        if not self._reads.is_open():

            def again() -> None:
                if self.confirm(asked, then, publishers=publishers):
                    then()

            self._reads.when_open(again)
            return False
        return self._interest is None or self._interest.confirm_subscriptions(
            asked, then, publishers=publishers
        )

    def permit_again(self) -> None:
        """Rules have changed: hold every client that is here to them."""
        self.settle()
        for session in list(self.registry.sessions.values()):
            link = session.link
            if isinstance(link, Connected):
                authorization.find_permit(link.client, session.client_id)
                authorization.recheck_subscriptions(link.client)
