"""The codec: the ordinary decoder and the kernel that cuts receive buffers take the same packets and refuse the same.

What the kernel has written, rows and frames, is read again; it must be what the decoder has understood. Of most batches
only the kernel has a look, as one stream each: it takes a hundred times as many."""

from collections import Counter
from random import Random

from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault, PacketTooLarge, ProtocolViolation
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.ingest import cut
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Packet, Publish, Pubrel
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name
from tests.fuzz.campaign import Target, Wrong
from tests.fuzz.corpus import packets
from tests.fuzz.kernels.mutate import Mutator
from tests.fuzz.streams import PARTITIONS, Stream

PACKET_BYTES_MAX = 1 << 16
ALIAS_MAX = 8
IN_FLIGHT = 64
ROW_RETAIN, ROW_EXPIRY, ROW_V5, ROW_PROPERTIES, ROW_EMPTY = 4, 8, 16, 32, 64
REASONS = frozenset(map(int, Reason))
# What only the kernel refuses, for it depends on what came before.
ALIAS_UNKNOWN, OF_THE_DECODER = 0x1082, 0x1000
OF_THE_CONNECTION = {0x93, 0x94, ALIAS_UNKNOWN}


class Codec(Target):
    name = "codec"
    inputs = 2000

    def __init__(self) -> None:
        super().__init__()
        self._mutators = {version: Mutator(packets(1, version), True) for version in (3, 4, 5)}

    def run(self, seed: int) -> Counter[str]:
        random = Random(seed)
        version = random.choice((3, 4, 5, 5, 5))
        fast = random.randrange(8) > 0
        made = self._mutators[version].inputs(self.inputs, random.getrandbits(64), random.choice((1, 1, 2, 4)))
        tail = random.choice((b"", b"\x00" * 4, b"\x30\x05\x00\x01a", b"\xff" * 70)) if self.tail else b""
        if fast and self.tail:
            self.current = b"".join(made)
            stream = Stream(version, random.getrandbits(64))
            stream.take(made, self.current)
            stream.look()
            return stream.counts
        walk = Walk(version, random)
        for data in self.each(made):
            walk.take(data, tail)
        walk.read_again()
        return walk.counts


class Walk:
    """What came of a batch: one connection after the other, each until its first fault."""

    def __init__(self, version: int, random: Random) -> None:
        self.version = version
        self.counts: Counter[str] = Counter()
        self._random = random
        self._topics = TopicTable(random.getrandbits(64))
        self._batches = [Batch() for _ in range(PARTITIONS)]
        self._expected: list[list[Publish]] = [[] for _ in range(PARTITIONS)]
        self._connect()

    def _connect(self) -> None:
        self._wire = wire = Wire(self.version == 5, PACKET_BYTES_MAX, 65535, ALIAS_MAX)
        wire.publishers = [0] * PARTITIONS
        if self._random.random() < 0.5:
            wire.window = window = Window(IN_FLIGHT)
            states = bytes(self._random.choice((1, 2, 3)) for _ in range(4))
            window.put(0, states, bytes(32), bytes(16))
        self._aliases: dict[int, str] = {}
        self._open: set[int] = set()

    def take(self, data: bytes, tail: bytes) -> None:
        """One input, by the kernel and by the decoder. raises: Wrong"""
        understood, end, refused = self._decode(data)
        taken, fault = self._cut(data, tail, dict(understood))
        if fault == -1 and refused is None:
            self.counts["taken" if taken == len(data) else "incomplete"] += 1
        elif fault in OF_THE_CONNECTION:
            self.counts["refused by the connection"] += 1
        elif fault == -1 or refused is None:
            raise Wrong(f"the kernel said {fault}, {self._wire.fault_text}, and the decoder {refused!r}")
        else:
            self.counts[f"refused 0x{refused.reason:02X}"] += 1
        if fault == -1 and taken != end:
            raise Wrong(f"the kernel took {taken} bytes, the decoder {end}")
        for at, packet in understood:
            if at >= taken:
                break
            if type(packet) is Publish:
                self._expect(packet)
            elif isinstance(packet, Pubrel):
                self._open.discard(packet.packet_id)
        if fault != -1:
            self._connect()

    def _cut(self, data: bytes, tail: bytes, good: dict[int, Packet]) -> tuple[int, int]:
        """(bytes taken, reason code of the fault or -1). good: where the decoder sees which packets"""
        wire, end, at = self._wire, len(data), 0
        buffer = data + tail
        while True:
            before = at
            at = cut(wire, self._batches, buffer, at, end, self._topics)
            if not before <= at <= end:
                raise Wrong(f"the kernel stopped at {at}, between {before} and {end}")
            stop = wire.stop
            if stop == ingest.MORE:
                return at, -1
            if stop == ingest.TOPIC:
                try:
                    check_topic_name(wire.topic.decode())
                except UnicodeDecodeError:
                    return at, 0x81
                except MqttFault as fault:
                    return at, fault.reason
                number = len(self._topics)
                self._topics[wire.topic] = (number % PARTITIONS) << 32 | number
            elif stop == ingest.PUBLISHER:
                wire.publishers[wire.partition] = 7 + wire.partition
            elif stop == ingest.FULL:
                self._batches[wire.partition].grow(wire.frame_bytes)
            elif stop == ingest.FAULT:
                if wire.fault not in REASONS or not wire.fault_text:
                    raise Wrong(f"a fault {wire.fault}, {wire.fault_text!r}")
                if wire.fault == 0x82 and "stands for no topic" in wire.fault_text:
                    return at, ALIAS_UNKNOWN
                return at, wire.fault
            else:
                after = at + wire.frame_bytes
                if after > end:
                    return at, -1
                head = frame_at(buffer, at, end)
                if head is None or sum(head) != wire.frame_bytes:
                    raise Wrong(f"the kernel left {wire.frame_bytes} bytes to the decoder, which sees {head}")
                packet = good.get(at)
                if packet is None:
                    return at, OF_THE_DECODER
                if isinstance(packet, Pubrel):
                    wire.release(packet.packet_id)  # as the session does
                at = after

    def _decode(self, data: bytes) -> tuple[list[tuple[int, Packet]], int, MqttFault | None]:
        """([where, packet] as the decoder understands them, where they end, what is wrong there)"""
        found: list[tuple[int, Packet]] = []
        at, end, version = 0, len(data), self.version
        try:
            while True:
                is_publish = at < end and data[at] >> 4 == 3
                head = frame_at(data, at, end)
                if head is None:
                    break
                size = sum(head)
                if size > PACKET_BYTES_MAX:
                    raise PacketTooLarge("too large")
                if at + size > end:
                    break
                if is_publish:
                    frame_at(data, at, end, version=version)
                    if data[at] & 14 == 8:  # the kernel knows no MQTT 3.1
                        raise MqttFault("DUP at QoS 0")
                packet = decode(data[at], data[at + head[0] : at + size], version)
                if type(packet) is Publish and "subscription_identifiers" in packet.properties:
                    raise ProtocolViolation("only a broker says those")
                found.append((at, packet))
                at += size
        except MqttFault as fault:
            return found, at, fault
        return found, at, None

    def _expect(self, packet: Publish) -> None:
        alias = packet.properties.get("topic_alias")
        topic = packet.topic
        if alias is not None:
            if topic:
                self._aliases[alias] = topic
            else:
                topic = self._aliases[alias]
        if packet.qos == 2:
            assert packet.packet_id is not None
            if packet.packet_id in self._open:
                return
            self._open.add(packet.packet_id)
        partition = self._topics[topic.encode()] >> 32
        self._expected[partition].append(
            packet
            if topic is packet.topic and alias is None
            else Publish(
                topic, packet.payload, packet.qos, packet.retain, packet.dup, packet.packet_id,
                {name: value for name, value in packet.properties.items() if name != "topic_alias"},  # type: ignore[arg-type]
            )
        )  # fmt: skip

    # What was written

    def read_again(self) -> None:
        """raises: Wrong where rows and frames are not the packets that were understood"""
        for partition, batch in enumerate(self._batches):
            self._read(partition, *batch.take())

    def _read(self, partition: int, rows: bytearray, frames: bytes, count: int, flags: int, tags: bytes) -> None:
        expected = self._expected[partition]
        if count != len(expected):
            raise Wrong(f"{count} rows of {len(expected)} packets")
        words = memoryview(rows).cast("I").tolist()
        if len(words) != 8 * count:
            raise Wrong(f"{len(words)} words in {count} rows")
        tagged = []
        for row in range(count):
            number, start, _, _, _, payload_at, publisher, row_flags = words[8 * row : 8 * row + 8]
            stop = words[8 * row + 9] if row + 1 < count else len(frames)
            if (row == 0 and start) or not start < stop <= len(frames):
                raise Wrong(f"a frame from {start} to {stop} of {len(frames)} bytes")
            head = frame_at(frames, start, stop, version=self.version)
            if head is None or sum(head) != stop - start:
                raise Wrong(f"a frame from {start} to {stop} that says {head}")
            packet = decode(frames[start], frames[start + head[0] : stop], self.version)
            assert isinstance(packet, Publish)
            wanted = expected[row]
            if (packet.topic, packet.payload, packet.qos, packet.packet_id, packet.properties) != (
                wanted.topic, wanted.payload, wanted.qos, wanted.packet_id, wanted.properties,
            ) or packet.retain or packet.dup:  # fmt: skip
                raise Wrong(f"{packet} was written for {wanted}")
            if frames[start + payload_at : stop] != packet.payload or publisher != 7 + partition:
                raise Wrong(f"a payload at {payload_at} of {packet}, by {publisher}")
            if self._topics[packet.topic.encode()] != partition << 32 | number:
                raise Wrong(f"topic {number} of partition {partition} for {packet.topic!r}")
            if row_flags != flags_of(wanted, self.version):
                raise Wrong(f"flags {row_flags:#x} for {wanted}")
            if packet.qos == 2:
                tagged.append((row, packet.packet_id))
        pairs = memoryview(tags).cast("I").tolist()
        if [*zip(pairs[::2], pairs[1::2], strict=True)] != tagged:
            raise Wrong(f"tags {pairs} for {tagged}")


def flags_of(packet: Publish, version: int) -> int:
    """Of the row that a packet becomes. docs/reference/log-format.md, "Row" """
    flags = packet.qos | (ROW_RETAIN if packet.retain else 0) | (0 if packet.payload else ROW_EMPTY)
    if version == 5:
        flags |= ROW_V5 | (ROW_PROPERTIES if packet.properties else 0)
        flags |= ROW_EXPIRY if "message_expiry_interval" in packet.properties else 0
    return flags
