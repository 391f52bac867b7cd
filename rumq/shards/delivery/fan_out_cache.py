"""The encoded bytes of a chunk for a group of readers: built once, kept briefly for readers slightly behind.

Knows no socket; the time is an argument."""
# compiled: hot

from __future__ import annotations

from collections import deque

from commitlog.chunk import FLAG_UNIFORM, FLAG_V5, Chunk
from commitlog.row_layout import ROW_QOS
from router.effects import Deliver
from router.matching.feed import Feed
from router.readers.reader import Group
from router.readers.subscription import DeliveryOptions
from rumq.mqtt.kernels import fanout
from rumq.mqtt.kernels.delivery_properties import NamesByNumber
from rumq.mqtt.kernels.fanout import Blob
from rumq.mqtt.kernels.publish_properties import RAISED
from rumq.session.state.session import Shape
from rumq.shards.delivery.traced_deliveries import replayed
from rumq.tracing.tracer import Tracer

KEPT_BYTES_MAX = 32 << 20


def encoded_identifiers(identifiers: tuple[int, ...]) -> bytes:
    """Subscription identifier properties. MQTT 5.0, 3.3.2.3.8."""
    out = bytearray()
    for value in identifiers:
        out.append(0x0B)
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def wire_form(
    form: DeliveryOptions,
    v5: bool,
    located: bytes,
    publishers: NamesByNumber,
    *,
    always_retain: bool = False,
    committed_only: bool = False,
    raised: bytes | None = None,
) -> fanout.Form:
    """The kernel's idea of a form. located: the partition's name, where a place may be told

    publishers: the partition's, or the chunk's own; committed_only: as of `GroupKey`; raised: as of `fanout.Form`"""
    retain = 2 if always_retain else int(form.retain_as_published)
    return fanout.Form(
        form.qos,
        retain,
        form.no_local,
        encoded_identifiers(form.identifiers) if v5 else b"",
        located if v5 else b"",
        publishers if v5 and form.tells_publisher else None,
        form.tells_place and not committed_only,
        raised,
    )


def located(feed: Feed) -> bytes:
    """The name of a partition, as subscribers are told it."""
    return f"{feed.partition.stream}/g{feed.partition.generation}/p{feed.partition.number}".encode()


def tells_publisher(group: Group) -> bool:
    """Whether somebody in the group asked who published."""
    return any(form.tells_publisher for form in group.forms)


ANY = 1 << 40  # messages


class GroupBytes:
    """What shapes the bytes of a group: of its key, and its forms as the kernel takes them, by partition.

    key: the client's, where its bytes are its own; None: they are anybody's; raised: as of `fanout.Form`"""

    __slots__ = ("alias_max", "forms", "key", "packet_max", "raised", "v5")

    def __init__(self, group: Group, partitions: int) -> None:
        shape: Shape
        key: str | None
        shape, key = group.shape  # type: ignore[misc]
        self.key = key
        self.v5, self.packet_max, self.alias_max = shape.version == 5, shape.packet_max, shape.alias_max
        self.raised = RAISED if shape.raises_qos else None
        self.forms: list[list[fanout.Form]] = [[] for _ in range(partitions)]


class FanOutCache:
    """Builds and keeps blobs. feeds: by partition"""

    def __init__(self, feeds: list[Feed], tracer: Tracer | None = None) -> None:
        self.feeds, self._tracer = feeds, tracer
        self._located = [located(feed) for feed in feeds]
        self._kept: deque[tuple[Chunk, Group, int]] = deque()
        self._kept_bytes = 0

    def shaped(self, group: Group) -> GroupBytes:
        """What shapes the bytes of a group, made once."""
        shaped: GroupBytes | None = group.cache  # type: ignore[assignment]
        if shaped is None:
            shaped = group.cache = GroupBytes(group, len(self._located))
        return shaped

    def forms(self, group: Group, partition: int, v5: bool, chunk: Chunk) -> list[fanout.Form]:
        """The group's forms as the kernel takes them."""
        if chunk.publishers is not None and tells_publisher(group):
            names = chunk.publishers
            return [self._form(group, form, v5, partition, names) for form in group.forms]
        forms = self.shaped(group).forms[partition]
        while len(forms) < len(group.forms):
            publishers = self.feeds[partition].partition.publisher_names
            forms.append(self._form(group, group.forms[len(forms)], v5, partition, publishers))
        return forms

    def _form(
        self, group: Group, form: DeliveryOptions, v5: bool, partition: int, publishers: NamesByNumber
    ) -> fanout.Form:
        committed_only = group.wants.committed_only
        place = self._located[partition] if committed_only or form.tells_place else b""
        raised = self.shaped(group).raised
        return wire_form(form, v5, place, publishers, committed_only=committed_only, raised=raised)

    def blob_of(
        self, effect: Deliver, v5: bool, packet_max: int, publisher: int, now_us: int, numbered_max: int = ANY
    ) -> Blob:
        """What the effect's group gets of the whole chunk. numbered_max: less than that as of `fanout.build`"""
        chunk, group = effect.chunk, effect.group
        kept = chunk.blobs
        blob: Blob | None = None if kept is None else kept.get(group)
        if blob is not None:
            return blob
        forms = self.forms(group, effect.partition, v5, chunk)
        whole_chunk = effect.first == 0 and effect.stop == chunk.count
        if effect.wanted is None and whole_chunk and not packet_max:
            blob = self._maybe_as_stored(chunk, forms[effect.form], v5)
        if blob is None:
            first, stop = effect.first, effect.stop
            if effect.wanted is None and whole_chunk:
                first, stop = 0, chunk.count
            blob, _ = fanout.build(
                chunk.rows, chunk.frames, first, stop, chunk.base_lsn, chunk.base_ts,
                forms if effect.wanted is not None else [forms[effect.form]], effect.wanted, effect.places,
                v5, packet_max, publisher, now_us, None, 0, 1 << 40, 0, numbered_max,
            )  # fmt: skip
            if self._tracer is not None and group.committed_only:
                replayed(self._tracer, effect, blob)
            # Times of expiry change by the second, and a part is of no use to others.
            if blob.dated or not whole_chunk or numbered_max != ANY:
                return blob
        if group.count == len(effect.readers):
            return blob  # everyone who could want it has it now
        if kept is None:
            kept = chunk.blobs = {}
        kept[group] = blob
        # What is kept keeps its chunk too.
        self._keep(chunk, group, len(blob.data) + len(chunk.rows))
        return blob

    def _maybe_as_stored(self, chunk: Chunk, form: fanout.Form, v5: bool) -> Blob | None:
        """The chunk's own frames, if they can go out as they are."""
        if not chunk.flags & FLAG_UNIFORM or (chunk.flags & FLAG_V5 != 0) != v5 or not form.plain():
            return None
        qos = fanout.first_flags(chunk.rows) & ROW_QOS
        if qos > form.qos:
            return None
        return fanout.whole(chunk.frames, chunk.rows, chunk.count, qos > 0, chunk.base_lsn)

    def _keep(self, chunk: Chunk, group: Group, size: int) -> None:
        self._kept.append((chunk, group, size))
        self._kept_bytes += size + 256
        while self._kept_bytes > KEPT_BYTES_MAX or len(self._kept) > 4096:
            old, of, size = self._kept.popleft()
            self._kept_bytes -= size + 256
            if old.blobs is not None:
                old.blobs.pop(of, None)
