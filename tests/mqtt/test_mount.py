"""What clients of a mount point say and are told, frame by frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.mount import Mount

POINT = "site-7/"
VERSIONS = [3, 4, 5]


def through(change: object, packet: p.Packet, version: int) -> p.Packet:
    reader = FrameReader()
    reader.receive(encode(packet, version))
    [found] = list(reader.frames())
    reader.receive(change(found.first_byte, found.body))  # type: ignore[operator]
    [made] = list(reader.frames())
    return decode(made.first_byte, made.body, version)


def connected(version: int, will: p.Will | None = None) -> tuple[Mount, p.Packet]:
    mount = Mount(POINT)
    connect = p.Connect("c", version, True, 10, "user", b"secret", will, {})
    return mount, through(mount.inward, connect, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_will_goes_under_the_mount_point_and_the_rest_of_connect_stays(version: int) -> None:
    _, found = connected(version, p.Will("a/b", b"gone", 1, True, {}))
    assert found == p.Connect(
        "c", version, True, 10, "user", b"secret", p.Will("site-7/a/b", b"gone", 1, True, {}), {}
    )
    assert connected(version)[1] == p.Connect("c", version, True, 10, "user", b"secret", None, {})


@pytest.mark.parametrize("version", VERSIONS)
@given(
    topic=st.text("abc/é", min_size=1, max_size=200), payload=st.binary(max_size=200), qos=st.integers(0, 2)
)
def test_what_goes_in_comes_out_as_it_was(version: int, topic: str, payload: bytes, qos: int) -> None:
    mount, _ = connected(version)
    said = p.Publish(topic, payload, qos, False, False, 7 if qos else None)  # type: ignore[arg-type]
    inside = through(mount.inward, said, version)
    assert inside == p.Publish(POINT + topic, payload, qos, False, False, 7 if qos else None)  # type: ignore[arg-type]
    assert through(mount.outward, inside, version) == said


def test_an_alias_without_a_topic_stays_one() -> None:
    mount, _ = connected(5)
    for change in (mount.inward, mount.outward):
        said = p.Publish("", b"x", 0, False, False, None, {"topic_alias": 3})
        assert through(change, said, 5) == said


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("#", "site-7/#"),
        ("a/+/b", "site-7/a/+/b"),
        ("$SYS/#", "site-7/$SYS/#"),
        ("$share/g/a/#", "$share/g/site-7/a/#"),
        ("$log/-1h/#", "$log/-1h/site-7/#"),
        ("$log/earliest", "site-7/$log/earliest"),
    ],
)
def test_filters_go_under_the_mount_point(version: int, asked: str, wanted: str) -> None:
    mount, _ = connected(version)
    subscribe = p.Subscribe(1, (p.Subscription(asked, 1), p.Subscription("x", 0)))
    found = through(mount.inward, subscribe, version)
    assert isinstance(found, p.Subscribe)
    assert [(each.topic_filter, each.qos) for each in found.filters] == [(wanted, 1), ("site-7/x", 0)]
    if version == 5 or not asked.startswith("$share"):
        left = through(mount.inward, p.Unsubscribe(1, (asked,)), version)
        assert isinstance(left, p.Unsubscribe) and left.filters == (wanted,)


@given(first_byte=st.integers(0, 255), body=st.binary(max_size=60))
def test_whatever_else_comes_goes_on_for_the_broker_to_refuse(first_byte: int, body: bytes) -> None:
    """Nothing that could be taken as a PUBLISH, SUBSCRIBE or CONNECT goes on without the mount point."""
    mount, _ = connected(5)
    reader = FrameReader()
    reader.receive(mount.inward(first_byte, body))
    [made] = list(reader.frames())
    assert made.first_byte == first_byte
    try:
        packet = decode(made.first_byte, made.body, 5)
    except MqttFault:
        return
    if isinstance(packet, p.Publish):
        assert packet.topic.startswith(POINT) or not packet.topic
    elif isinstance(packet, p.Subscribe):
        assert all(POINT in each.topic_filter for each in packet.filters)


def test_a_topic_that_becomes_too_long_is_refused() -> None:
    mount, _ = connected(5)
    with pytest.raises(MqttFault, match="65536 bytes with the mount point 'site-7/'"):
        through(mount.inward, p.Publish("x" * (65_536 - len(POINT)), b"", 0, False, False, None), 5)
