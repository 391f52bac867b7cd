"""Outboxes and transports: what a delivery window writes to is one of these, whoever makes it."""

import pytest

from rumq.loop.queues import StepQueue
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.ports.transport import Outbox, Transport
from rumq.session.state.session import Session


class Kept(Outbox):
    """Keeps what is written."""

    def __init__(self, room: int) -> None:
        self.room, self.refused, self.data = room, False, bytearray()

    def write(self, data: bytes | bytearray | memoryview, owner: object = None) -> None:
        self.data += data


def window_on(outbox: Outbox) -> DeliveryWindow:
    return DeliveryWindow(outbox, Session("c", None, personal=False), 10, StepQueue())


def test_a_window_writes_to_whatever_outbox_it_is_given() -> None:
    outbox = Kept(room=5)
    flow = window_on(outbox)
    flow.outbox.write(b"abc")
    assert bytes(outbox.data) == b"abc"
    assert (flow.outbox.room, flow.outbox.refused) == (5, False)
    flow.outbox.refused = True
    assert outbox.refused


def test_an_outbox_says_what_it_cannot_do() -> None:
    outbox = Outbox()
    with pytest.raises(NotImplementedError):
        outbox.write(b"abc")
    with pytest.raises(NotImplementedError):
        outbox.waits()


@pytest.mark.parametrize("call", ["close", "pause_reading", "resume_reading"])
def test_a_transport_says_what_it_cannot_do(call: str) -> None:
    with pytest.raises(NotImplementedError):
        getattr(Transport(), call)()
