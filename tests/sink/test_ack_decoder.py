"""Acknowledgements in runs, the same however they were cut. MQTT 5.0, 3.4 to 3.7."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy", reason="numpy is not installed (pip install 'rumq[spark]')")

from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Packet, Pingresp, Puback, Pubcomp, Pubrec, Suback
from rumq.mqtt.reasons import Reason
from rumq.sink.ack_decoder import PUBACK, PUBREL, AckDecoder, Run, short_packets

ids = st.integers(1, 65_535)
reasons = st.sampled_from([Reason.SUCCESS, Reason.NO_MATCHING_SUBSCRIBERS, Reason.QUOTA_EXCEEDED])
packets_ = st.lists(
    st.one_of(
        st.builds(Puback, ids, reasons),
        st.builds(Pubrec, ids, reasons),
        st.builds(Pubrec, ids, reasons, st.just({"reason_string": "why"})),
        st.builds(Pubcomp, ids),
        st.builds(Suback, ids, st.just((Reason.GRANTED_QOS_1,))),
        st.just(Pingresp()),
    ),
    max_size=12,
)


def flat(found: list[Run | Packet]) -> list[object]:
    single: list[object] = []
    for each in found:
        if isinstance(each, Run):
            single += [
                (each.head, n, reason) for n, reason in zip(each.ids.tolist(), each.reasons.tolist(), strict=True)
            ]
        else:
            single.append(each)
    return single


@given(packets_, st.lists(st.integers(1, 9)))
def test_packets_are_the_same_however_they_are_cut(packets: list[Packet], sizes: list[int]) -> None:
    heads = {Puback: 0x40, Pubrec: 0x50, Pubcomp: 0x70}
    data = b"".join(encode(packet, 5) for packet in packets)
    answers, found = AckDecoder(), []
    for size in [*sizes, len(data)]:
        found += list(answers.receive(data[:size]))
        data = data[size:]
    assert flat(found) == [
        (heads[type(p)], p.packet_id, p.reason) if isinstance(p, Puback | Pubrec | Pubcomp) else p for p in packets
    ]


def test_acknowledgements_alike_are_one_run() -> None:
    (run,) = AckDecoder().receive(b"".join(encode(Puback(n), 5) for n in range(1, 1001)))
    assert isinstance(run, Run) and (run.head, run.ids.tolist()) == (PUBACK, list(range(1, 1001)))


def test_why_a_row_was_refused_is_heard() -> None:
    (run,) = AckDecoder().receive(encode(Pubrec(5, Reason.NOT_AUTHORIZED, {"reason_string": "not yours"}), 5))
    assert isinstance(run, Run) and run.says == "not yours"


def test_a_release_is_four_bytes() -> None:
    (run,) = AckDecoder().receive(encode(Puback(513), 5))
    assert isinstance(run, Run) and short_packets(PUBREL, run.ids) == b"\x62\x02\x02\x01"
