"""Answers to a batch of our packets, by their number in it. MQTT 5.0, 2.4. No I/O."""

from rumq.client.session.outbound import Done
from rumq.errors import Refused
from rumq.mqtt.reasons import Reason


class BatchAcks:
    """Answers to a batch of our packets, by their number in it; the sender waits until `left` is 0."""

    def __init__(self) -> None:
        self.left = 0
        self.found: dict[int, tuple[tuple[Reason, ...], str]] = {}

    def expect(self, number: int) -> Done:
        """The callback for the answer to packet `number`."""
        self.left += 1

        def on_answer(reasons: tuple[Reason, ...], text: str) -> None:
            self.left -= 1
            self.found[number] = reasons, text

        return on_answer

    def reason(self, number: int, what: str) -> Reason:
        """The one reason of an answer; raises Refused where it is an error."""
        reasons, text = self.found.get(number, ((), ""))  # QoS 0 has no answer, UNSUBACK of 3.1.1 no reason
        reason = reasons[0] if reasons else Reason.SUCCESS
        if reason.is_error:
            raise Refused(what, reason, text or reason.text)
        return reason
