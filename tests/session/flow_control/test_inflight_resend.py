"""MQTT-4.4.0-1: on reconnect PUBLISH and PUBREL are sent again with their original packet ids."""

from rumq.mqtt.kernels.window import Window
from rumq.mqtt.packets import Pubrel
from rumq.session.flow_control.inflight_resend import resend


def window_of(states: bytes) -> Window:
    window = Window(100)
    lsns = b"".join((50 + at).to_bytes(8, "little") for at in range(len(states)))
    window.put(0, states, lsns, (1 << 6).to_bytes(4, "little") * len(states))
    return window


def test_publishes_are_returned_in_order_and_pubrel_is_sent_at_once() -> None:
    window, sent = window_of(bytes([1, 2, 2, 1])), list[Pubrel]()
    window.acknowledge(0x50, 2)  # PUBREC
    assert list(resend(window, sent.append)) == [(1, 64, 50), (3, 64, 52), (4, 64, 53)]
    assert sent == [Pubrel(2)]


def test_nothing_is_sent_again_where_nothing_is_in_flight() -> None:
    window, sent = window_of(b"\1"), list[Pubrel]()
    window.acknowledge(0x40, 1)  # PUBACK
    assert not resend(window, sent.append) and not resend(None, sent.append) and not sent
