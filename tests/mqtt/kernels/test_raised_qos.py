"""Messages of QoS 1 that are sent as QoS 2 with a property that says so, and stored as QoS 1 where they arrive.

docs/decisions/0074-a-bridge-raises-qos-1.md"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.row_layout import ROW_PROPERTIES, ROW_QOS, ROW_RETAIN, ROW_V5
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels.publish_properties import RAISED
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties
from tests.kernel_forms import forms
from tests.mqtt.kernels.test_ingest import KERNEL, Cutter

MARK = ("rumq-qos", "1")
FANOUT = pytest.mark.parametrize("fanout", forms("rumq.mqtt.kernels.fanout"))


def stored(message: Publish, version: int = 5) -> tuple[bytes, bytes]:
    """As the log has it: its row and its frame."""
    frame = encode(message, version)
    head = frame_at(frame, 0, len(frame))
    assert head is not None
    row = bytearray(32)
    row[20:24] = (len(frame) - len(message.payload)).to_bytes(4, "little")
    row[28] = message.qos | (ROW_V5 if version == 5 else 0) | (ROW_RETAIN if message.retain else 0)
    return bytes(row), frame


def sent(fanout: Any, message: Publish, granted: int, raised: bytes | None, **how: Any) -> Publish:
    """What a subscriber gets of it. version: of the publisher; to: of the subscriber"""
    version, to = how.pop("version", 5), how.pop("to", 5)
    rows, frames = stored(message, version)
    form = fanout.Form(granted, 1, False, how.pop("identifiers", b""), b"", None, False, raised)
    blob, _ = fanout.build(
        rows, frames, 0, 1, 7, 0, [form], None, None, to == 5, 0, 0, 0, how.pop("aliases", None), 8, 1 << 40
    )
    assert blob.count == 1 and blob.qos_count == (blob.data[0] & 6 != 0)
    packet = numbered(fanout, blob, 9)
    got = decode(packet[0], packet[2:], to)
    assert isinstance(got, Publish)
    return got


def numbered(fanout: Any, blob: Any, packet_id: int) -> bytes:
    """The only frame of a blob, with a packet id if it has one."""
    return bytes(fanout.again(blob, packet_id)) if blob.qos_count else bytes(blob.data)


def message(qos: int, **properties: Any) -> Publish:
    return Publish("t", b"x", qos, packet_id=9 if qos else None, properties=Properties(**properties))


@FANOUT
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_is_of_qos_1_goes_out_as_qos_2_and_says_so(fanout: Any, qos: int, granted: int) -> None:
    """Of QoS 1: by its publisher, or by what the subscription was granted."""
    lower = min(qos, granted)
    got = sent(fanout, message(qos), granted, RAISED)
    assert got.qos == (0, 2, 2)[lower]
    assert got.properties.get("user_properties", []) == ([MARK] if lower == 1 else [])
    as_usual = sent(fanout, message(qos), granted, None)
    assert as_usual.qos == lower and not as_usual.properties


@FANOUT
def test_without_a_property_to_say_so_it_is_raised_all_the_same(fanout: Any) -> None:
    """Of a handshake that has begun, whoever asks now."""
    for to in (4, 5):
        got = sent(fanout, message(1), 2, b"", to=to)
        assert got.qos == 2 and not got.properties


@FANOUT
def test_the_property_stands_behind_all_others(fanout: Any) -> None:
    got = sent(fanout, message(1, user_properties=[("k", "v")], content_type="c"), 1, RAISED, aliases={})
    assert got.properties == {"user_properties": [("k", "v"), MARK], "content_type": "c", "topic_alias": 1}


@FANOUT
@pytest.mark.parametrize("said", ["1", "2"])
def test_what_a_publisher_says_of_the_qos_itself_is_followed_by_what_it_is(fanout: Any, said: str) -> None:
    """The last one is this broker's: the target believes that one alone. None is needed where nobody looks for it."""
    own = ("rumq-qos", said)
    for qos, last in ((1, "1"), (2, "2")):
        got = sent(fanout, message(qos, user_properties=[own]), 2, RAISED)
        assert got.qos == 2 and got.properties["user_properties"] == [own, ("rumq-qos", last)]
        got = sent(fanout, message(qos, user_properties=[own]), 2, b"")
        assert got.properties["user_properties"] == [own]
    got = sent(fanout, message(0, user_properties=[own]), 2, RAISED)
    assert got.properties["user_properties"] == [own]


@FANOUT
def test_a_message_of_an_older_publisher_is_raised_too(fanout: Any) -> None:
    got = sent(fanout, message(1), 1, RAISED, version=4)
    assert got.qos == 2 and got.properties == {"user_properties": [MARK]}


@FANOUT
def test_frames_that_are_raised_do_not_go_out_as_they_are_stored(fanout: Any) -> None:
    assert fanout.Form(2, 0, False, b"", b"").plain()
    assert not fanout.Form(2, 0, False, b"", b"", None, False, RAISED).plain()
    assert not fanout.Form(2, 0, False, b"", b"", None, False, b"").plain()


# --- where it arrives


def cutter_of(kernel: Any, *, restores_qos: bool = True) -> Cutter:
    cutter = Cutter(kernel, 5)
    cutter.wire.restores_qos = restores_qos
    return cutter


def marked(*before: tuple[str, str], qos: int = 2, behind: tuple[tuple[str, str], ...] = (), **more: Any) -> Publish:
    """A message that says that it is of QoS 1."""
    return message(qos, user_properties=[*before, MARK, *behind], **more)


@KERNEL
def test_a_message_that_says_so_is_stored_with_qos_1_and_without_the_property(kernel: Any) -> None:
    cutter = cutter_of(kernel)
    cutter.feed([encode(marked(("k", "v"), behind=(("rumq-via", "a"),), content_type="c"), 5)])
    assert cutter.acks == bytes((0x50, 2, 0, 9)), "the handshake is that of QoS 2"
    (got,) = cutter.records()
    assert got == message(1, user_properties=[("k", "v"), ("rumq-via", "a")], content_type="c")


@KERNEL
def test_it_is_stored_once_and_again_behind_pubrel(kernel: Any) -> None:
    cutter = cutter_of(kernel)
    cutter.feed([encode(marked(), 5) * 2, bytes((0x62, 2, 0, 9)), encode(marked(), 5)])
    assert cutter.acks == b"\x50\2\0\x09" * 2 + b"\x70\2\0\x09" + b"\x50\2\0\x09"
    assert cutter.records() == [message(1), message(1)]


@KERNEL
def test_its_row_is_of_qos_1_and_has_the_tag_of_a_message_of_qos_2(kernel: Any) -> None:
    """Without the property it has none."""
    cutter = cutter_of(kernel)
    cutter.feed([encode(marked(), 5) + encode(Publish("t", b"x", 2, packet_id=10), 5)])
    rows, _, _, _, tags = cutter.batch.take()
    assert [int.from_bytes(tags[at : at + 8], "little") for at in (0, 8)] == [9 << 32, 1 | 10 << 32]
    flags = [int.from_bytes(rows[at : at + 4], "little") for at in (28, 60)]
    assert [each & ROW_QOS for each in flags] == [1, 2] and not any(each & ROW_PROPERTIES for each in flags)


@KERNEL
@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_of_another_qos_keeps_the_property(kernel: Any, qos: int) -> None:
    cutter = cutter_of(kernel)
    cutter.feed([encode(marked(qos=qos), 5)])
    assert cutter.records() == [marked(qos=qos)]


@KERNEL
def test_who_did_not_ask_is_taken_at_his_word(kernel: Any) -> None:
    cutter = cutter_of(kernel, restores_qos=False)
    cutter.feed([encode(marked(), 5)])
    assert cutter.records() == [marked()]


@KERNEL
def test_of_several_the_last_one_says_so(kernel: Any) -> None:
    """What stands before it is the publisher's own, and stays."""
    cutter = cutter_of(kernel)
    for packet_id, (first, last) in enumerate([("1", "2"), ("2", "1"), ("1", "1")], 1):
        said = [("rumq-qos", first), ("k", "v"), ("rumq-qos", last), ("rumq-via", "a")]
        cutter.feed([encode(replace(message(2, user_properties=said), packet_id=packet_id), 5)])
    found = [(each.qos, each.properties["user_properties"]) for each in cutter.records()]
    assert found == [
        (qos, [("rumq-qos", first), ("k", "v"), ("rumq-via", "a")]) for first, qos in (("1", 2), ("2", 1), ("1", 1))
    ]


@KERNEL
@pytest.mark.parametrize("pair", [("rumq-qos", "3"), ("rumq-qoS", "1"), ("rumq-qos1", ""), ("rumq-qos", "")])
def test_no_other_property_says_so(kernel: Any, pair: tuple[str, str]) -> None:
    cutter = cutter_of(kernel)
    other = message(2, user_properties=[pair])
    cutter.feed([encode(other, 5)])
    assert cutter.records() == [other]


@KERNEL
@pytest.mark.parametrize("alias_first", [True, False])
def test_topic_aliases_and_the_property_go_wherever_they_stand(kernel: Any, alias_first: bool) -> None:
    cutter = cutter_of(kernel)
    for name, packet_id in ((b"\0\1t", 1), (b"\0\0", 2)):
        parts = [b"\x23\0\3", b"\x03\0\1c" + RAISED]
        properties = b"".join(parts if alias_first else reversed(parts)) + b"\x26\0\1k\0\1v"
        body = name + bytes((0, packet_id, len(properties))) + properties + b"x"
        cutter.feed([bytes((0x34, len(body))) + body])
    expected = message(1, content_type="c", user_properties=[("k", "v")])
    assert [(each.topic, each.properties, each.payload, each.qos) for each in cutter.records()] == [
        ("t", expected.properties, b"x", 1)
    ] * 2


PAIRS = st.lists(
    st.sampled_from([("k", "v"), ("rumq-qos", "1"), ("rumq-qos", "2"), ("rumq-via", "a"), ("", "")]),
    min_size=1,
    max_size=3,
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "payload_format_indicator": st.just(1), "content_type": st.text(max_size=3).filter(lambda t: "\0" not in t),
        "response_topic": st.just("r"), "correlation_data": st.binary(max_size=130), "user_properties": PAIRS,
    },
)  # fmt: skip


@KERNEL
@FANOUT
@given(
    messages=st.lists(
        st.tuples(st.integers(0, 2), PROPERTIES, st.binary(max_size=20), st.booleans()), min_size=1, max_size=6
    ),
    granted=st.integers(0, 2),
)
def test_a_message_that_goes_out_and_comes_in_is_what_it_was(
    kernel: Any, fanout: Any, messages: list[Any], granted: int
) -> None:
    """Whatever a publisher sends, the other log has it with the lower one of its QoS and the subscription's."""
    cutter, expected = cutter_of(kernel), []
    for number, (qos, properties, payload, retain) in enumerate(messages, 1):
        given_ = Publish(f"t/{qos}", payload, qos, retain, False, 1 if qos else None, Properties(**properties))
        rows, frames = stored(given_)
        form = fanout.Form(granted, 1, False, b"", b"", None, False, RAISED)
        blob, _ = fanout.build(rows, frames, 0, 1, 0, 0, [form], None, None, True, 0, 0, 0, None, 0, 1 << 40)
        lower = min(qos, granted)
        cutter.feed([numbered(fanout, blob, number)])
        expected.append(Publish(f"t/{qos}", payload, lower, False, False, number if lower else None, given_.properties))
    assert cutter.records() == expected
