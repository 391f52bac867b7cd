"""Messages that a caller has sent together, and what became of each. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rumq.mqtt.reasons import Reason
from rumq.services.contract.faults import CallFault
from rumq.services.publishing.frames import OVERHEAD, OutgoingPublish

OF_REASON = {
    Reason.NOT_AUTHORIZED: "NOT_AUTHORIZED",
    Reason.TOPIC_NAME_INVALID: "TOPIC_INVALID",
    Reason.PACKET_TOO_LARGE: "MESSAGE_TOO_LARGE",
    Reason.QUOTA_EXCEEDED: "QUOTA_EXCEEDED",
    Reason.MESSAGE_RATE_TOO_HIGH: "QUOTA_EXCEEDED",
}


class PublishBatch:
    """messages: None for those that were refused before they were sent

    ids: 0 until it is known; refusals: by number of the message; fault: of all that is not answered
    is_done: every message has its answer; left_acks, left_ids: of messages, to come"""

    __slots__ = ("_done", "fault", "ids", "is_done", "left_acks", "left_ids", "messages", "refusals", "size")

    def __init__(self, messages: Sequence[OutgoingPublish | None], refusals: dict[int, CallFault]) -> None:
        self.messages, self.refusals = messages, refusals
        self.ids = [0] * len(messages)
        self.left_acks = self.left_ids = len(messages) - len(refusals)
        self.size = sum(OVERHEAD + each.size for each in messages if each is not None)
        self.fault: CallFault | None = None
        self.is_done = False
        self._done: Callable[[], None] | None = None

    def when_done(self, call: Callable[[], None]) -> None:
        """Call it once every message has its answer, at once if they have."""
        self._done = call
        self._look()

    def acknowledged(self) -> None:
        self.left_acks -= 1

    def refused(self, number: int, reason: Reason, why: str) -> None:
        """By the broker."""
        self.refusals[number] = CallFault(
            OF_REASON.get(reason, "MESSAGE_REFUSED"), f"the broker refuses the message: {why or reason.text}",
            mqtt_reason=int(reason),
        )  # fmt: skip
        self.left_acks -= 1
        self.left_ids -= 1
        self._look()

    def located(self, number: int, message_id: int) -> None:
        """message_id: 0: it is not known, and will not be"""
        self.ids[number] = message_id
        self.left_ids -= 1
        self._look()

    def fail(self, fault: CallFault) -> None:
        """Nothing more is heard of it."""
        if not self.is_done:
            self.fault = fault
            self._end()

    def _look(self) -> None:
        if not self.left_acks and not self.left_ids and not self.is_done:
            self._end()

    def _end(self) -> None:
        self.is_done = True
        if self._done is not None:
            self._done()
