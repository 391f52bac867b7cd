"""Hypothesis strategies for every packet, within what its version can say. Text is anything MQTT allows."""

from typing import Any, cast

from hypothesis import strategies as st

from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from rumq.mqtt.properties import PROPERTIES, WILL, Properties, WireType
from rumq.mqtt.reasons import CONNACK_RETURN_CODES, REASONS_IN, SUBACK_RETURN_CODES, Reason

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
topics = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0#+"), min_size=1, max_size=20)
payloads = st.binary(max_size=200)  # on both sides of a remaining length of two bytes
packet_ids = st.integers(1, 65535)
qualities = st.sampled_from((0, 1, 2))
versions = st.sampled_from((3, 4, 5))

_VALUES: dict[WireType, st.SearchStrategy[Any]] = {
    WireType.FLAG: st.booleans(),
    WireType.BYTE: st.integers(0, 255),
    WireType.TWO_BYTES: st.integers(0, 2**16 - 1),
    WireType.FOUR_BYTES: st.integers(0, 2**32 - 1),
    WireType.VARIABLE: st.integers(0, 268_435_455),
    WireType.STRING: texts,
    WireType.BINARY: st.binary(max_size=20),
    WireType.PAIR: st.tuples(texts, texts),
}


def _values(name: str, place: int) -> st.SearchStrategy[Any]:
    prop = next(prop for prop in PROPERTIES if prop.name == name)
    one = topics if name == "response_topic" else _VALUES[prop.wire]
    if prop.values is not None and prop.wire is not WireType.FLAG:
        top = {WireType.TWO_BYTES: 2**16 - 1, WireType.VARIABLE: 268_435_455}.get(prop.wire, 2**32 - 1)
        one = st.integers(prop.values.start, min(prop.values.stop - 1, top))
    if prop.repeats_in is None:
        return one
    return st.lists(one, min_size=1, max_size=3 if place in prop.repeats_in else 1)


def properties(place: int, version: int) -> st.SearchStrategy[Properties]:
    if version < 5:
        return st.just(Properties())
    names = [prop.name for prop in PROPERTIES if place in prop.places]
    some = st.fixed_dictionaries({}, optional={name: _values(name, place) for name in names})
    return some.map(_with_method).map(lambda found: cast(Properties, found))


def _with_method(found: dict[str, Any]) -> dict[str, Any]:
    """Authentication data needs a method."""
    if "authentication_data" in found:
        found.setdefault("authentication_method", "SCRAM")
    return found


def reasons(packet_type: PacketType, version: int) -> st.SearchStrategy[Reason]:
    if version < 5:
        return st.just(Reason.SUCCESS)
    return st.sampled_from(sorted(REASONS_IN[packet_type]))


def connects(version: int) -> st.SearchStrategy[Connect]:
    wills = st.builds(Will, topics, payloads, qualities, st.booleans(), properties(WILL, version))
    names, passwords = st.none() | texts, st.none() | payloads
    made = st.builds(
        Connect,
        *(texts, st.just(version), st.booleans(), st.integers(0, 65535), names, passwords, st.none() | wills),
        properties(PacketType.CONNECT, version),
    )
    if version == 5:
        return made
    return made.filter(lambda packet: packet.client_id and (packet.password is None or packet.username is not None))


def connacks(version: int) -> st.SearchStrategy[Connack]:
    refused = st.sampled_from(CONNACK_RETURN_CODES) if version < 5 else reasons(PacketType.CONNACK, 5)
    having = properties(PacketType.CONNACK, version)
    present = st.booleans() if version > 3 else st.just(False)
    return st.builds(Connack, present, st.just(Reason.SUCCESS), having) | st.builds(
        Connack, st.just(False), refused, having
    )


def publishes(version: int) -> st.SearchStrategy[Publish]:
    having = properties(PacketType.PUBLISH, version)
    plain = st.builds(Publish, topics, payloads, st.just(0), st.booleans(), properties=having)
    acknowledged = st.builds(
        Publish, topics, payloads, st.sampled_from((1, 2)), st.booleans(), st.booleans(), packet_ids, having
    )
    return plain | acknowledged


def subscribes(version: int) -> st.SearchStrategy[Subscribe]:
    wanted = st.builds(SubscriptionRequest, texts, qualities)
    if version == 5:
        wanted = st.builds(SubscriptionRequest, topics, qualities, st.booleans(), st.booleans(), qualities).filter(
            lambda one: not one.topic_filter.startswith("$share/")
        )
    filters = st.lists(wanted, min_size=1, max_size=4).map(tuple)
    return st.builds(Subscribe, packet_ids, filters, properties(PacketType.SUBSCRIBE, version))


def subacks(version: int) -> st.SearchStrategy[Suback]:
    codes = SUBACK_RETURN_CODES if version < 5 else REASONS_IN[PacketType.SUBACK]
    some = st.lists(st.sampled_from(sorted(codes)), min_size=1, max_size=4).map(tuple)
    return st.builds(Suback, packet_ids, some, properties(PacketType.SUBACK, version))


def unsubacks(version: int) -> st.SearchStrategy[Unsuback]:
    if version < 5:
        return st.builds(Unsuback, packet_ids)
    some = st.lists(reasons(PacketType.UNSUBACK, 5), min_size=1, max_size=4).map(tuple)
    return st.builds(Unsuback, packet_ids, some, properties(PacketType.UNSUBACK, 5))


def auths() -> st.SearchStrategy[Auth]:
    having = properties(PacketType.AUTH, 5).map(
        lambda found: cast(Properties, {"authentication_method": "SCRAM"} | dict(found))
    )
    return st.just(Auth()) | st.builds(Auth, reasons(PacketType.AUTH, 5), having)


def packets(version: int) -> st.SearchStrategy[Packet]:
    """Every packet that `version` knows."""
    answers = {
        PacketType.PUBACK: Puback,
        PacketType.PUBREC: Pubrec,
        PacketType.PUBREL: Pubrel,
        PacketType.PUBCOMP: Pubcomp,
    }
    unsubscribed = st.lists(texts, min_size=1, max_size=4).map(tuple)
    return st.one_of(
        connects(version),
        connacks(version),
        publishes(version),
        *(
            st.builds(answer, packet_ids, reasons(kind, version), properties(kind, version))
            for kind, answer in answers.items()
        ),
        subscribes(version),
        subacks(version),
        st.builds(Unsubscribe, packet_ids, unsubscribed, properties(PacketType.UNSUBSCRIBE, version)),
        unsubacks(version),
        st.just(Pingreq()),
        st.just(Pingresp()),
        st.builds(Disconnect, reasons(PacketType.DISCONNECT, version), properties(PacketType.DISCONNECT, version)),
        *([auths()] if version == 5 else []),
    )
