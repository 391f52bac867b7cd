"""A chunk is encoded once for a group, and the bytes are kept as long as somebody of it may still want them."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog import Chunk
from commitlog.chunk import FLAG_QOS, FLAG_UNIFORM
from commitlog.testing.simulated_files import SimulatedFiles
from router.effects import Deliver
from router.readers.reader import Group, GroupKey, Reader
from router.readers.subscription import DeliveryOptions, Subscription
from router.shard import ShardRouter
from rumq.session.state.session import shape_of
from rumq.shards.delivery import fan_out_cache
from rumq.shards.delivery.fan_out_cache import FanOutCache, encoded_identifiers, wire_form
from tests.commitlog.records import NOW, append, opened, some_records
from tests.conformance.wire import Prop, one_property

CHUNK = Chunk(0, 1, 0, 0, b"", b"")
UNIFORM = FLAG_UNIFORM | FLAG_QOS  # all of them 3.1.1, QoS 1


class World:
    """A partition, and groups whose readers may be at any place of it."""

    def __init__(self) -> None:
        self.partition = opened(SimulatedFiles(), hot=1 << 30).own[0]
        self.router = ShardRouter([self.partition])
        self.cache = FanOutCache(self.router.feeds)

    def chunk(self, count: int = 4, flags: int = UNIFORM) -> Chunk:
        return append(self.partition, some_records(count), flags=flags)

    def group(self, count: int = 2, *, committed_only: bool = False, qos: int = 1) -> Group:
        """With so many readers, and one form."""
        group = Group(GroupKey(frozenset([Subscription("#", qos)]), committed_only, (shape_of(4, 0, 0), None)), 1)
        group.count = count
        group.form_number(["#"], "t/0")
        return group

    def blob(self, group: Group, chunk: Chunk, first: int = 0, stop: int | None = None, readers: int = 1) -> object:
        names = [Reader(number, group, [0], "c") for number in range(readers)]
        effect = Deliver(group, 0, chunk, first, chunk.count if stop is None else stop, names)
        return self.cache.blob_of(effect, False, 0, 0, NOW)


@given(st.lists(st.integers(1, 268_435_455)))
def test_identifiers_are_properties_of_a_publish(identifiers: list[int]) -> None:
    """MQTT 5.0, 3.3.2.3.8"""
    expected = b"".join(one_property(Prop.SUBSCRIPTION_ID, number) for number in identifiers)
    assert encoded_identifiers(tuple(identifiers)) == expected


@pytest.mark.parametrize("v5", [True, False])
def test_a_form_has_properties_for_mqtt_5_alone(v5: bool) -> None:
    form = wire_form(DeliveryOptions(2, True, True, (7,), True), v5, b"main/g1/p0", {1: b"c"})
    assert (form.qos, form.retain, form.no_local) == (2, 1, True)
    assert (form.identifiers, form.located) == ((b"\x0b\x07", b"main/g1/p0") if v5 else (b"", b""))
    assert form.publishers == ({1: b"c"} if v5 else None)


@pytest.mark.parametrize(("as_published", "always", "retain"), [(False, False, 0), (True, False, 1), (False, True, 2)])
def test_the_retain_flag_is_kept_dropped_or_set(as_published: bool, always: bool, retain: int) -> None:
    form = wire_form(DeliveryOptions(0, as_published, False, ()), True, b"", {}, always_retain=always)
    assert form.retain == retain


def test_readers_who_learn_their_place_in_the_log_have_the_partition_s_name_in_their_form() -> None:
    world = World()
    (live,) = world.cache.forms(world.group(), 0, True, CHUNK)
    (replay,) = world.cache.forms(world.group(committed_only=True), 0, True, CHUNK)
    assert (live.located, replay.located) == (b"", b"main/g1/p0")


def test_records_that_come_with_their_publishers_names_are_told_by_those() -> None:
    """Those of the partition may be other ones by then: docs/decisions, "Names of publishers are bounded"."""
    world = World()
    wanted = frozenset([Subscription("#", 1, tells_publisher=True)])
    group = Group(GroupKey(wanted, False, (shape_of(4, 0, 0), None)), 1)
    group.form_number(["#"], "t/0")
    read = Chunk(0, 1, 0, 0, b"", b"")
    read.publishers = {7: b"long ago"}
    (own,) = world.cache.forms(group, 0, True, read)
    assert own.publishers == read.publishers
    (form,) = world.cache.forms(group, 0, True, CHUNK)
    assert form.publishers is world.partition.publisher_names


def test_forms_that_a_group_gets_later_are_added() -> None:
    world = World()
    group = world.group()
    before = world.cache.forms(group, 0, False, CHUNK)
    group.forms.append(DeliveryOptions(0, False, False, ()))
    after = world.cache.forms(group, 0, False, CHUNK)
    assert len(after) == 2 and after[0] is before[0]


def test_a_chunk_that_can_go_out_as_it_is_stored_is_not_copied() -> None:
    world = World()
    chunk = world.chunk()
    blob = world.blob(world.group(), chunk)
    assert blob.data is chunk.frames and blob.count == blob.qos_count == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize(("flags", "qos"), [(FLAG_QOS, 1), (UNIFORM, 0)])
def test_one_of_mixed_versions_or_of_a_higher_qos_is_encoded(flags: int, qos: int) -> None:
    world = World()
    chunk = world.chunk(flags=flags)
    blob = world.blob(world.group(qos=qos), chunk)
    assert blob.data is not chunk.frames and blob.count == 4  # type: ignore[attr-defined]
    assert blob.qos_count == 4 * qos  # type: ignore[attr-defined]


def test_readers_of_a_group_share_one_encoding_and_another_group_has_its_own() -> None:
    world = World()
    chunk, group = world.chunk(flags=FLAG_QOS), world.group(3)
    first = world.blob(group, chunk)
    assert world.blob(group, chunk) is first
    assert world.blob(world.group(3), chunk) is not first


def test_what_everyone_has_got_at_once_is_not_kept() -> None:
    world = World()
    chunk, group = world.chunk(flags=FLAG_QOS), world.group(2)
    world.blob(group, chunk, readers=2)
    assert not chunk.blobs


def test_a_part_of_a_chunk_is_not_kept() -> None:
    world = World()
    chunk, group = world.chunk(), world.group(3)
    part = world.blob(group, chunk, 1, 3)
    assert part.count == 2 and not chunk.blobs  # type: ignore[attr-defined]


def test_rows_in_several_forms_are_encoded_each_in_its_own() -> None:
    world = World()
    chunk, group = world.chunk(), world.group(3)
    group.forms.append(DeliveryOptions(0, False, False, ()))
    effect = Deliver(
        group, 0, chunk, 0, 4, [Reader(1, group, [0], "c")], 0,
        (array("I", [1, 2, 0]), memoryview(array("I", [0, 1, 2, 0])), None),
    )  # fmt: skip
    blob = world.cache.blob_of(effect, False, 0, 0, NOW)
    assert (blob.count, blob.qos_count) == (3, 2), "row 2 is not wanted, row 1 comes at QoS 0"


def test_what_is_kept_is_bounded_in_bytes_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    group = world.group(3)
    chunks = [world.chunk(flags=FLAG_QOS) for _ in range(10)]
    blobs = [world.blob(group, chunk) for chunk in chunks]
    weight = len(blobs[0].data) + len(chunks[0].rows) + 256  # type: ignore[attr-defined]
    monkeypatch.setattr(fan_out_cache, "KEPT_BYTES_MAX", 4 * weight)
    last = world.chunk(flags=FLAG_QOS)
    world.blob(group, last)
    assert [bool(chunk.blobs) for chunk in (*chunks, last)] == [False] * 7 + [True] * 4
    assert world.blob(group, chunks[0]) is not blobs[0], "it is encoded anew"
