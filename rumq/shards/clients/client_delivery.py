"""The deliveries of a shard's clients, as one connection sees them: subscriptions, readers, and what is sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from rumq.loop.read_gate import ReadGate
from rumq.session.connection.broker_port import Redelivering
from rumq.session.ports.transport import Transport
from rumq.shards.turn.step_input import StepInput


class SubscriptionConfirmation(Protocol):
    """Filters whose records other shards send: `rumq.shards.peers.interest`."""

    def confirm_subscriptions(
        self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool
    ) -> bool: ...
    def is_home_away(self, key: str) -> bool: ...


class ClientDelivery:
    """The `DeliveryPort` of a shard."""

    def __init__(
        self, step_input: StepInput, settle: Callable[[], None], send_again: Callable[[Redelivering], None],
        reads: ReadGate, interest: SubscriptionConfirmation | None,
    ) -> None:  # fmt: skip
        """reads: where a SUBSCRIBE waits until this shard may answer it; interest: None with one shard"""
        self.commands = step_input.commands
        self.refresh: Callable[[Any], None] = step_input.ready.add
        self.in_next_turn: Callable[[Transport], None] = step_input.ready.add_next_turn
        self.settle, self.send_again = settle, send_again
        self._reads, self._interest = reads, interest

    def confirm(self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool = False) -> bool:
        if not self._reads.is_open():

            def again() -> None:
                if self.confirm(asked, then, publishers=publishers):
                    then()

            self._reads.when_open(again)
            return False
        return self._interest is None or self._interest.confirm_subscriptions(asked, then, publishers=publishers)

    def is_home_away(self, key: str) -> bool:
        return self._interest is not None and self._interest.is_home_away(key)
