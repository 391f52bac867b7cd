"""A client of a mount point tries to end the broker with one packet, and to read what other tenants say.

One packet: a topic or a list of filters that has no room for the mount point, or is nonsense. Other tenants: a list of
filters that begins with `#` and ends in nonsense, so long that it is served piece by piece. CWE-20, CWE-248, CWE-863"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Address, Peer
from tests.conformance.wire import Kind, Prop, Will

POINTS = ("site-7/", "site-8/")
KEPT = [(Prop.SESSION_EXPIRY, 3600)]
# What the last of a list's filters is: cut short, no UTF-8, a QoS that there is not, one that ends the connection.
NONSENSE = [b"\xff\xffx", b"\x00\x01\xff\x00", b"\x00\x01a\x03", b"\x00\x03a#b\x00", b"\x00", b"\x00\x00\x00"]


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    folder: Path = tmp_path_factory.mktemp("mounts")
    config = folder / "config.toml"
    listener = '[[listener]]\nhost = "127.0.0.1"\nport = 0\n'
    config.write_text(
        f"shards.count = {request.param}\nmqtt.topic_bytes_max = 65535\n{listener}"
        + "".join(f'{listener}mount_point = "{point}"\n' for point in POINTS)
    )
    broker = Rumqd(folder / "data", "--config", str(config))
    broker.start()
    yield broker
    assert not broker.named("client.crashed", "task.failed", "shard.failed", "shard.died")
    broker.end()


def addresses(broker: Rumqd) -> list[Address]:
    broker.event("listener.bound", number=1 + len(POINTS))
    return [("127.0.0.1", bound["port"]) for bound in broker.named("listener.bound")]


def long_list(kind: Kind, version: int, end: bytes, first: bytes = b"#") -> bytes:
    """A SUBSCRIBE or UNSUBSCRIBE of hundreds of filters, the first of them everything, and `end` behind them."""
    options = b"\x00" if kind == Kind.SUBSCRIBE else b""
    names = [first, *(b"filter/number/%d" % n for n in range(400))]
    filters = b"".join(len(each).to_bytes(2, "big") + each + options for each in names)
    return wire.frame(kind << 4 | 2, b"\x00\x07" + b"\x00" * (version == 5) + filters + end)


def still_serves(address: Address) -> None:
    with Peer(address) as peer:
        assert peer.connect("witness").code == 0
        assert peer.subscribe("still/here") == [0]
        peer.publish("still/here", b"yes")
        assert peer.payloads(1) == [b"yes"]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_will_without_room_for_the_mount_point_ends_its_own_connection(broker: Rumqd, version: int) -> None:
    plain, mounted, _ = addresses(broker)
    with Peer(mounted, version) as peer:
        peer.send(wire.connect("c", version, will=Will("w" * 65_535, b"")))
        last = peer.rest_until_end()
        if version == 5:
            assert [(packet.kind, packet.code) for packet in last] == [(Kind.CONNACK, 0x90)]
        else:
            assert last == []
    still_serves(mounted)
    still_serves(plain)


@pytest.mark.parametrize("kind", [Kind.SUBSCRIBE, Kind.UNSUBSCRIBE])
@pytest.mark.parametrize("client", ["c1", "c2", "c3"])  # of either shard
def test_a_filter_without_room_for_the_mount_point_ends_its_own_connection(
    broker: Rumqd, kind: Kind, client: str
) -> None:
    _, mounted, _ = addresses(broker)
    with Peer(mounted) as peer:
        assert peer.connect(client).code == 0
        options = b"\x00" if kind == Kind.SUBSCRIBE else b""
        peer.send(wire.frame(kind << 4 | 2, b"\x00\x07\x00\xff\xff" + b"x" * 65_535 + options))
        assert [(packet.kind, packet.code) for packet in peer.rest_until_end()] == [(Kind.DISCONNECT, 0x8F)]
    still_serves(mounted)


@pytest.mark.parametrize("end", range(len(NONSENSE)))
@pytest.mark.parametrize("version", [4, 5])
def test_a_list_that_ends_in_nonsense_grants_nothing_of_it(broker: Rumqd, version: int, end: int) -> None:
    """Neither other tenants' messages nor one's own: as a whole, or not at all. On a plain listener, too."""
    plain, mounted, other = addresses(broker)
    for number, address in enumerate((mounted, plain)):
        name = f"reader-{number}-{version}-{end}"
        fields = {"clean": False, "properties": KEPT if version == 5 else []}
        with Peer(address, version) as reader:
            reader.connect(name, **fields)
            reader.send(long_list(Kind.SUBSCRIBE, version, NONSENSE[end]))
            last = reader.rest_until_end()
            if version == 5:
                assert [packet.kind for packet in last] == [Kind.DISCONNECT] and last[0].code >= 0x80
            else:
                assert last == []
        with Peer(address, version) as reader, Peer(other) as tenant, Peer(address) as own:
            reader.connect(name, **fields)
            tenant.connect("tenant")
            tenant.publish("secret", b"for site 8 alone", 1)
            own.connect("own")
            own.publish("filter/number/3", b"for site 7", 1)
            reader.expect_silence()
            assert reader.subscribe(("filter/number/3", 1)) == [1]


def test_a_list_that_ends_in_nonsense_takes_nothing_away(broker: Rumqd) -> None:
    plain, mounted, _ = addresses(broker)
    for address in (mounted, plain):
        with Peer(address) as reader:
            reader.connect("stays", clean=False, properties=KEPT)
            reader.subscribe("news")
            reader.send(long_list(Kind.UNSUBSCRIBE, 5, b"\xff\xffx", first=b"news"))
            assert [packet.kind for packet in reader.rest_until_end()] == [Kind.DISCONNECT]
        with Peer(address) as reader, Peer(address) as own:
            reader.connect("stays", clean=False, properties=KEPT)
            own.connect("own")
            own.publish("news", b"still", 1)
            assert reader.payloads(1) == [b"still"]
            reader.leave()


def test_what_came_before_a_packet_that_is_refused_was_taken(broker: Rumqd) -> None:
    _, mounted, _ = addresses(broker)
    with Peer(mounted) as reader, Peer(mounted) as writer:
        reader.connect("r")
        reader.subscribe("a")
        writer.connect("w")
        writer.send(
            wire.publish("a", b"1"), wire.publish("a", b"2"), wire.frame(0x30, b"\xff\xffx"), wire.publish("a", b"3")
        )
        assert [(p.kind, p.code) for p in writer.rest_until_end()] == [(Kind.DISCONNECT, 0x81)]
        assert reader.payloads(2) == [b"1", b"2"]
        reader.expect_silence()


def test_properties_without_end_are_refused_before_they_are_looked_at(broker: Rumqd) -> None:
    """16 MiB of user properties took the loop seconds: those of a PUBLISH are a kernel's, of any other Python's."""
    _, mounted, _ = addresses(broker)
    many = [(Prop.USER_PROPERTY, ("", ""))] * 100_000
    for packet in (wire.subscribe(7, [("a", 0)], many), wire.ack(Kind.PUBACK, 7, 0, many)):
        with Peer(mounted) as peer:
            peer.connect("many")
            peer.send(packet)
            assert [(p.kind, p.code) for p in peer.rest_until_end()] == [(Kind.DISCONNECT, 0x95)]
