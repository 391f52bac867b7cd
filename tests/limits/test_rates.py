"""A client above its rate is held to it, and nobody else. Counted at a subscriber: what has come by then was read."""

import time

from rumq.session.flow_control.rate_limits import BURST_SECONDS
from tests.conformance import wire
from tests.limits.conftest import Dial, Run

RATE, COUNT, PAYLOAD_BYTES = 200, 700, 5000
READ_MESSAGES = (1 << 18) // PAYLOAD_BYTES  # of one read, by which a bucket may go below nothing


def test_who_sends_too_fast_is_held_to_its_rate_and_nobody_else(run: Run, join: Dial) -> None:
    broker = run("--set", f"listener.client_messages_per_second_max={RATE}")
    flood, other, subscriber = (join(broker, name) for name in ("flood", "other", "subscriber"))
    subscriber.subscribe("f")
    begun = time.monotonic()
    flood.socket.setblocking(False)
    left = memoryview(b"".join(wire.publish("f", b"x" * PAYLOAD_BYTES, 0) for _ in range(COUNT)))
    received, answered = 0, 0
    while received < COUNT:
        try:
            left = left[flood.socket.send(left) :] if left else left
        except BlockingIOError:
            pass
        if received < COUNT // 2:
            assert other.publish("own", b"", 1) in (0, 0x10)
            answered += 1
        received += len(subscriber.payloads(10))
        passed = time.monotonic() - begun
        assert received <= RATE * (passed + BURST_SECONDS) + READ_MESSAGES
    assert passed >= (COUNT - READ_MESSAGES) / RATE - BURST_SECONDS, "the limit held it back at all"
    assert answered >= 30, "the other one was answered while the flood was held back"
