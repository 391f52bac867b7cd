"""Valid bytes to begin with, drawn from a seed: packets by our own encoder, every kind in every version."""

from random import Random
from typing import Any

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.properties import PROPERTIES, WILL, WireType
from rumq.mqtt.reasons import CONNACK_RETURN_CODES, REASONS_IN, SUBACK_RETURN_CODES, Reason

TOPICS = (
    "a", "a/b", "plant/7/temp", "$SYS/x", "ä/ö", "", "/", "//", "long/" * 24 + "end", "\U0001f680", "x" * 130,
    "$share/g/a/#", "$log/earliest/a", "a/0", "a/1",
)  # fmt: skip
FILTERS = (
    *TOPICS[:6], "#", "+", "+/+", "a/#", "a/+/b", "$share/g/a", "$share/g/#", "$log/earliest/#", "$log/-1h/a/+",
    "$log/0/a/b", "$log/retained@-1d/a/#", "$log/2026-11-20T06:00:00Z/#",
)  # fmt: skip
STARTS = (
    "earliest",
    "latest",
    "-1h",
    "0",
    "retained@-1d",
    "2026-11-20T06:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "x",
)
TEXTS = ("", "a", "MQTT", "text/plain", "ü", "x" * 127, "x" * 128, "\ufffd", "\x7f")
BLOBS = (b"", b"x", b"\x00\xff", bytes(127), bytes(range(200)), b"21.5")
ANSWERS = {
    PacketType.PUBACK: p.Puback, PacketType.PUBREC: p.Pubrec, PacketType.PUBREL: p.Pubrel,
    PacketType.PUBCOMP: p.Pubcomp,
}  # fmt: skip


class Maker:
    """Draws packets of one version. alias_max: of topic aliases"""

    def __init__(self, random: Random, version: int, alias_max: int = 8) -> None:
        self.random, self.version, self.alias_max = random, version, alias_max

    def any(self) -> p.Packet:
        """A packet of any kind, from either side."""
        kinds = [
            self.connect, self.publish, self.publish, self.publish, self.answer, self.answer, self.subscribe,
            self.unsubscribe, self.suback, self.connack, self.rest,
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def from_client(self) -> p.Packet:
        """One that a client may send once it is in."""
        kinds = [self.publish] * 6 + [self.answer] * 3 + [self.subscribe, self.subscribe, self.unsubscribe]
        return self.random.choice(kinds)() if self.random.randrange(20) else p.Pingreq()

    def connect(self) -> p.Connect:
        r, will = self.random, None
        if r.randrange(2):
            will = p.Will(self._topic(), r.choice(BLOBS), r.randrange(3), r.random() < 0.5, self._properties(WILL))
        user = r.choice((None, "ann", "ü"))
        password = None if user is None else r.choice((None, b"pencil", b"\x00"))
        return p.Connect(
            r.choice(("p7", "q", "x" * 30)), self.version, r.random() < 0.5, r.choice((0, 1, 60, 65535)), user,
            password, will, self._properties(PacketType.CONNECT),
        )  # fmt: skip

    def publish(self) -> p.Publish:
        r = self.random
        qos, properties, topic = r.randrange(3), self._properties(PacketType.PUBLISH), self._topic()
        if self.version == 5:
            properties.pop("subscription_identifiers", None)
            if "topic_alias" in properties:
                properties["topic_alias"] = r.randrange(1, self.alias_max + 2)
                if r.randrange(2):
                    topic = ""
        packet_id = r.choice((1, 2, 3, 255, 256, 65535)) if qos else None
        return p.Publish(
            topic, r.choice(BLOBS), qos, r.random() < 0.3, qos > 0 and r.random() < 0.3, packet_id, properties
        )

    def answer(self) -> p.Packet:
        r = self.random
        kind = r.choice(list(ANSWERS))
        five = self.version == 5 and r.randrange(3) == 0
        reason = r.choice(sorted(REASONS_IN[kind])) if five else Reason.SUCCESS
        return ANSWERS[kind](r.choice((1, 2, 3, 65535)), reason, self._properties(kind) if five else {})

    def subscribe(self) -> p.Subscribe:
        r, filters = self.random, []
        for _ in range(r.choice((1, 1, 2, 3, 60))):  # of many a piece is served in each turn
            name, five = r.choice(FILTERS) or "a", self.version == 5
            local = five and not name.startswith("$share") and r.randrange(3) == 0
            handling = r.randrange(3) if five else 0
            filters.append(p.SubscriptionRequest(name, r.randrange(3), local, five and r.randrange(2) == 0, handling))
        properties = self._properties(PacketType.SUBSCRIBE)
        if self.version == 5 and r.randrange(4) == 0:
            properties["user_properties"] = [("rumq-from", r.choice(STARTS))]
        return p.Subscribe(r.randrange(1, 65536), tuple(filters), properties)

    def unsubscribe(self) -> p.Unsubscribe:
        names = tuple(self.random.choice(FILTERS) for _ in range(self.random.randrange(1, 4)))
        return p.Unsubscribe(7, names, self._properties(PacketType.UNSUBSCRIBE))

    def suback(self) -> p.Packet:
        r, five = self.random, self.version == 5
        codes = sorted(REASONS_IN[PacketType.SUBACK] if five else SUBACK_RETURN_CODES)
        reasons = tuple(r.choice(codes) for _ in range(r.randrange(1, 4)))
        if r.randrange(2):
            return p.Suback(9, reasons, self._properties(PacketType.SUBACK))
        if not five:
            return p.Unsuback(9)
        found = (r.choice(sorted(REASONS_IN[PacketType.UNSUBACK])),)
        return p.Unsuback(9, found, self._properties(PacketType.UNSUBACK))

    def connack(self) -> p.Connack:
        five = self.version == 5
        codes = sorted(REASONS_IN[PacketType.CONNACK]) if five else CONNACK_RETURN_CODES
        return p.Connack(False, self.random.choice(codes), self._properties(PacketType.CONNACK))

    def rest(self) -> p.Packet:
        found: list[p.Packet] = [p.Pingreq(), p.Pingresp(), p.Disconnect()]
        if self.version == 5:
            some = self._properties(PacketType.AUTH) | {"authentication_method": "SCRAM-SHA-256"}
            found += [
                p.Disconnect(Reason.DISCONNECT_WITH_WILL_MESSAGE, self._properties(PacketType.DISCONNECT)), p.Auth(),
                p.Auth(self.random.choice(sorted(REASONS_IN[PacketType.AUTH])), some),
            ]  # fmt: skip
        return self.random.choice(found)

    def _topic(self) -> str:
        return self.random.choice(TOPICS).replace("#", "x").replace("+", "x") or "t"

    def _properties(self, place: int) -> Any:
        found: dict[str, Any] = {}
        if self.version < 5:
            return found
        for prop in PROPERTIES:
            if place in prop.places and self.random.randrange(4) == 0:
                found[prop.name] = self._value(prop, place)
        if "authentication_data" in found:
            found.setdefault("authentication_method", "SCRAM-SHA-256")
        return found

    def _value(self, prop: Any, place: int) -> Any:
        r = self.random
        values: dict[WireType, Any] = {
            WireType.FLAG: r.random() < 0.5, WireType.BYTE: 1, WireType.TWO_BYTES: r.choice((1, 2, 65535)),
            WireType.FOUR_BYTES: r.choice((1, 60, 2**32 - 1)), WireType.VARIABLE: r.choice((1, 127, 128, 268_435_455)),
            WireType.STRING: r.choice(TEXTS), WireType.BINARY: r.choice(BLOBS),
            WireType.PAIR: (r.choice(TEXTS), r.choice(TEXTS)),
        }  # fmt: skip
        one = "answer/here" if prop.name == "response_topic" else values[prop.wire]
        if prop.repeats_in is None:
            return one
        return [one] * (r.randrange(1, 3) if place in prop.repeats_in else 1)


def packets(seed: int, version: int, count: int = 400) -> list[bytes]:
    """Packets of every kind that `version` has, as bytes."""
    maker = Maker(Random(f"{seed} {version}"), version)
    return [encode(maker.any(), version) for _ in range(count)]
