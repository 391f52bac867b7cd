"""CONNECT from bytes: how much is read, and in which version a fault is told."""

import pytest

from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits
from rumq.session.handshake.first_packet import read_connect, version_of
from tests.session.broker import Broker, Wire, connect


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_whole_connect_is_read_and_its_version_is_known(version: int) -> None:
    client = Wire(Broker()).link.client
    data = encode(connect("c", version), version)
    packet, stop = read_connect(client, data + b"more", 0, len(data) + 4)
    assert packet is not None and (packet.client_id, stop, client.version) == ("c", len(data), version)


def test_a_large_connect_is_refused_as_soon_as_its_version_is_here() -> None:
    client = Wire(Broker(Limits(connect_bytes_max=100))).link.client
    data = encode(connect("c" * 200), 5)
    assert read_connect(client, data, 0, 5) == (None, 0)
    with pytest.raises(MqttFault) as fault:
        read_connect(client, data, 0, 12)
    assert fault.value.reason == Reason.PACKET_TOO_LARGE and client.version == 5


def test_another_protocol_by_its_name_is_not_answered() -> None:
    """MQTT 3.1.1, 3.1.2.1."""
    with pytest.raises(ProtocolViolation):
        version_of(b"\x00\x04AMQP\x05")
