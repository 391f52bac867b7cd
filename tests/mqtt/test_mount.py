"""What clients of a mount point say and are told, frame by frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode, filter_list
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.mount import Mount, OutsideTheMount

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
    assert found == p.Connect("c", version, True, 10, "user", b"secret", p.Will("site-7/a/b", b"gone", 1, True, {}), {})
    assert connected(version)[1] == p.Connect("c", version, True, 10, "user", b"secret", None, {})


@pytest.mark.parametrize("version", VERSIONS)
@given(topic=st.text("abc/é", min_size=1, max_size=200), payload=st.binary(max_size=200), qos=st.integers(0, 2))
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
    subscribe = p.Subscribe(1, (p.SubscriptionRequest(asked, 1), p.SubscriptionRequest("x", 0)))
    found = through(mount.inward, subscribe, version)
    assert isinstance(found, p.Subscribe)
    assert [(each.topic_filter, each.qos) for each in found.filters] == [(wanted, 1), ("site-7/x", 0)]
    if version == 5 or not asked.startswith("$share"):
        left = through(mount.inward, p.Unsubscribe(1, (asked,)), version)
        assert isinstance(left, p.Unsubscribe) and left.filters == (wanted,)


SHARED = st.sampled_from(["", "$share/g/", "$log/earliest/", "$log/-1h/"])
TOPICS = st.builds("".join, st.tuples(SHARED, st.text("a/#+é", max_size=5)))


@given(
    first_byte=st.sampled_from([0x82, 0xA2]), filters=st.lists(TOPICS, max_size=60),
    cut=st.integers(0, 400), junk=st.binary(max_size=6), version=st.sampled_from([4, 5]),
)  # fmt: skip
def test_filters_that_end_in_nonsense_are_under_the_mount_point_or_refused(
    first_byte: int, filters: list[str], cut: int, junk: bytes, version: int
) -> None:
    """However little of a list can be decoded: what is taken of it, piece by piece, is of this client's topics."""
    mount, _ = connected(version)
    body = b"\0\1" + b"\0" * (version == 5)
    for each in filters:
        body += len(each.encode()).to_bytes(2, "big") + each.encode() + (b"\1" if first_byte == 0x82 else b"")
    body = body[: cut or None] + junk
    try:
        reader = FrameReader()
        reader.receive(mount.inward(first_byte, body))
    except MqttFault:
        return
    [made] = list(reader.frames())
    taken: list[str] = []
    try:
        asked = filter_list(made.first_byte, made.body, version)
        while asked:
            if first_byte == 0x82:
                taken += [each.topic_filter for each in asked.subscriptions(1)]
            else:
                taken += asked.filters(1)
    except MqttFault:
        pass
    for each in taken:
        rest = each.split("/", 2)[2] if each.startswith(("$share/", "$log/")) else each
        assert rest.startswith(POINT) or not rest


@given(first_byte=st.integers(0, 255), body=st.binary(max_size=60))
def test_whatever_else_comes_is_refused_here_or_goes_on_for_the_broker_to_refuse(first_byte: int, body: bytes) -> None:
    """Nothing that could be taken as a PUBLISH, SUBSCRIBE or CONNECT goes on without the mount point."""
    mount, _ = connected(5)
    reader = FrameReader()
    try:
        reader.receive(mount.inward(first_byte, body))
    except MqttFault:
        with pytest.raises(MqttFault):
            decode(first_byte, body, 5)
        return
    [made] = list(reader.frames())
    assert made.first_byte == first_byte
    try:
        packet = decode(made.first_byte, made.body, 5)
    except MqttFault:
        return
    if isinstance(packet, p.Publish):
        assert packet.topic.startswith(POINT) or not packet.topic
    elif isinstance(packet, p.Subscribe):
        assert all(POINT in each.topic_filter or not each.topic_filter for each in packet.filters)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_will_that_becomes_too_long_is_refused(version: int) -> None:
    mount = Mount(POINT)
    connect = p.Connect("c", version, True, 10, None, None, p.Will("x" * 65_535, b"", 0, False, {}), {})
    with pytest.raises(MqttFault, match="too long with the mount point") as refused:
        through(mount.inward, connect, version)
    assert refused.value.reason == 0x90 and mount.version == version


def test_a_filter_that_becomes_too_long_and_a_list_that_becomes_too_large_are_refused() -> None:
    mount, _ = connected(5)
    with pytest.raises(MqttFault, match="too long with the mount point") as refused:
        through(mount.inward, p.Subscribe(1, (p.SubscriptionRequest("x" * 65_530),)), 5)
    assert refused.value.reason == 0x8F
    small = Mount(POINT, 100)
    with pytest.raises(MqttFault, match="before its 20 filters") as refused:
        through(small.inward, p.Unsubscribe(1, ("x",) * 20), 4)
    assert refused.value.reason == 0x95


def test_what_is_not_under_the_mount_point_does_not_go_out() -> None:
    mount, _ = connected(5)
    with pytest.raises(OutsideTheMount):
        through(mount.outward, p.Publish("site-8/x", b"", 0, False, False, None), 5)


def test_a_topic_that_becomes_too_long_is_refused() -> None:
    mount, _ = connected(5)
    with pytest.raises(MqttFault, match="65536 bytes with the mount point 'site-7/'"):
        through(mount.inward, p.Publish("x" * (65_536 - len(POINT)), b"", 0, False, False, None), 5)
