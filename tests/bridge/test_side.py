"""The version of MQTT at the other broker: 5, and 3.1.1 where 5 is refused; never so because a line was cut."""

import contextlib

import pytest
import trio

from rumq.bridge.side import AUTO, FILTERS_MAX, REMOTE, Side, SideConnection, open_side, release_ids, subscribe
from rumq.client.session.options import ConnectOptions
from rumq.errors import ClientError
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Connack, Pubcomp, Publish, Suback, Subscribe
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, simulated

CONNECT_5, CONNECT_311, CONNECT_BRIDGE = b"\x00\x04MQTT\x05", b"\x00\x04MQTT\x04", b"\x00\x04MQTT\x84"


class RawBroker(FakeBroker):
    """Answers each CONNECT with the next of some bytes; none: it hangs up. connects: what it was sent"""

    def __init__(self, *answers: bytes) -> None:
        super().__init__()
        self._answers = list(answers)
        self.connects: list[bytes] = []

    async def open_stream(self) -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()
        answer = self._answers.pop(0)

        async def serve() -> None:
            self.connects.append(bytes(await ours.receive_some()))
            if answer:
                await ours.send_all(answer)
            else:
                await ours.aclose()

        trio.lowlevel.spawn_system_task(serve)
        return theirs


def connection_options() -> ConnectOptions:
    return ConnectOptions(client_id="c", session_expiry=99, keep_alive=10)


async def opened(broker: FakeBroker, version: int = AUTO, **more: bool) -> SideConnection:
    return await open_side(Side(REMOTE, broker.open_stream, connection_options(), {}, version=version, **more), 10)


REFUSALS = {
    "0x84": bytes.fromhex("200300 84 00".replace(" ", "")), "0x01 as of 3.1.1": bytes.fromhex("20020001"),
    "a broker that hangs up": b"", "no MQTT": bytes.fromhex("2000"),
}  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("session_present", [False, True])
def test_a_broker_that_refuses_mqtt_5_is_asked_in_3_1_1(refusal: bytes, session_present: bool) -> None:
    @simulated
    async def ask() -> None:
        broker = RawBroker(refusal, bytes((0x20, 2, session_present, 0)))
        connection = await opened(broker)
        assert connection.version == 4 and connection.connack.session_present == session_present
        assert connection.as_target(was_lost=False).version == 4
        assert connection.receive_maximum == 20, "more would end the connection at mosquitto, which cannot say so"
        first, second = broker.connects
        assert CONNECT_5 in first and CONNECT_311 in second
        flags = second[second.index(CONNECT_311) + len(CONNECT_311)]
        assert not flags & 2, "the session stays"

    ask()


@simulated
async def test_mqtt_5_is_asked_first_each_time() -> None:
    """A line that was cut in the wrong moment must not cost what MQTT 5 brings for longer than one connection."""
    broker = RawBroker(b"", bytes.fromhex("20020000"), bytes.fromhex("2003000000"))
    assert (await opened(broker)).version == 4
    assert (await opened(broker)).version == 5


@simulated
async def test_one_that_took_mqtt_5_before_is_not_asked_in_3_1_1_because_a_line_was_cut() -> None:
    """It would be without `rumq-via` for as long as that connection lasts. What it says itself counts."""
    broker = RawBroker(b"")
    with pytest.raises(ClientError, match="closed"):
        await opened(broker, takes_5=True)
    assert len(broker.connects) == 1
    assert (await opened(RawBroker(bytes.fromhex("20020001"), bytes.fromhex("20020000")), takes_5=True)).version == 4


@simulated
async def test_where_neither_is_taken_the_fault_is_that_of_mqtt_5() -> None:
    broker = RawBroker(b"", b"")
    with pytest.raises(ClientError, match="closed"):
        await opened(broker)


@simulated
async def test_a_broker_that_refuses_the_login_is_not_asked_in_another_version() -> None:
    broker = RawBroker(bytes.fromhex("2003008700"))
    with pytest.raises(ClientError):
        await opened(broker)
    assert len(broker.connects) == 1


@pytest.mark.parametrize(("version", "sent"), [(5, CONNECT_5), (4, CONNECT_311)])
def test_a_version_of_the_settings_is_the_only_one(version: int, sent: bytes) -> None:
    @simulated
    async def ask() -> None:
        broker = RawBroker(bytes.fromhex("20020001"))
        with pytest.raises(ClientError):
            await opened(broker, version)
        assert sent in broker.connects[0] and len(broker.connects) == 1

    ask()


@simulated
async def test_in_3_1_1_a_bridge_says_that_it_is_one_where_its_own_messages_would_come_back() -> None:
    """MQTT 3.1.1 has no "no local"; mosquitto knows this bit."""
    broker = RawBroker(bytes.fromhex("20020000"))
    await opened(broker, 4, echoes=True)
    assert CONNECT_BRIDGE in broker.connects[0]


# --- what a broker can send before the link is up, for as long as it may take to answer

CONNACK = bytes.fromhex("2003000000")
HUGE = b"\xff\xff\xff\x7f"  # a remaining length of 256 MiB


class FloodBroker(FakeBroker):
    """Answers CONNECT, and what comes next, with the beginning of a packet, and then zeros without end. sent: bytes"""

    def __init__(self, *answers: bytes) -> None:
        super().__init__()
        self._answers = answers
        self.sent = 0

    async def open_stream(self) -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()

        async def serve() -> None:
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                for answer in self._answers:
                    await ours.receive_some()
                    await ours.send_all(answer)
                while self.sent < 2**28:
                    await ours.wait_send_all_might_not_block()
                    await ours.send_all(bytes(2**16))
                    self.sent += 2**16
                    await trio.testing.wait_all_tasks_blocked()

        trio.lowlevel.spawn_system_task(serve)
        return theirs


@pytest.mark.parametrize("first_byte", [b"\x20", b"\x30", b"\x90"])
@pytest.mark.parametrize("version", [AUTO, 4])
def test_a_connack_is_no_longer_than_an_answer(first_byte: bytes, version: int) -> None:
    @simulated
    async def ask() -> None:
        broker = FloodBroker(first_byte + HUGE)
        with pytest.raises(ClientError, match="268435460 bytes"):
            await opened(broker, version)
        assert broker.sent <= 2**17

    ask()


@pytest.mark.parametrize("first_byte", [b"\x90", b"\x40", b"\xe0"])
def test_an_answer_to_subscribe_is_no_longer_than_its_reasons(first_byte: bytes) -> None:
    @simulated
    async def ask() -> None:
        broker = FloodBroker(CONNACK, first_byte + HUGE)
        connection = await opened(broker)
        side = Side(REMOTE, broker.open_stream, connection_options(), {f"{n}": 1 for n in range(FILTERS_MAX)})
        with pytest.raises(ClientError, match=f"where {2**16 + FILTERS_MAX} is the most"):
            await subscribe(connection, side, ())
        assert broker.sent <= 2**17
        await connection.stream.close()

    ask()


@simulated
async def test_each_part_of_many_filters_has_its_time() -> None:
    """A broker grants some at a time and serves others in between: all of them may take longer than a connect may."""
    broker = FakeBroker()
    count, seconds = 5 * FILTERS_MAX, connection_options().connect_seconds_max

    async def answer() -> None:
        peer, _ = await broker.accept(Connack(True))
        for _ in range(5):
            asked = await peer.receive()
            assert isinstance(asked, Subscribe) and len(asked.filters) == FILTERS_MAX
            await trio.sleep(0.7 * seconds)
            await peer.send(Suback(asked.packet_id, (Reason.GRANTED_QOS_1,) * FILTERS_MAX))
        await peer.receive()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        connection = await opened(broker)
        side = Side(REMOTE, broker.open_stream, connection_options(), {f"{n}": 1 for n in range(count)})
        await subscribe(connection, side, ())
        with pytest.raises(ClientError, match="no answer to SUBSCRIBE"):
            await subscribe(connection, side, ())
        await connection.stream.close()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("first_byte", [b"\x70", b"\x34"])
def test_while_ids_are_released_no_packet_is_longer_than_what_is_kept(first_byte: bytes) -> None:
    @simulated
    async def ask() -> None:
        broker = FloodBroker(CONNACK, first_byte + HUGE)
        connection = await opened(broker)
        with pytest.raises(ClientError, match="is the most"):
            await release_ids(connection, range(1, 9))
        assert broker.sent <= 2**17
        await connection.stream.close()

    ask()


@pytest.mark.parametrize("size", [1, 3, 100, 2**18])
def test_what_comes_behind_an_answer_is_the_links(size: int) -> None:
    """However it is cut: CONNACK, PUBCOMP among messages, and the beginning of a packet."""

    @simulated
    async def ask() -> None:
        broker = FakeBroker()
        async with trio.open_nursery() as nursery:
            made: list[SideConnection] = []

            async def connect() -> None:
                made.append(await opened(broker))
                await release_ids(made[0], range(1, 2))

            nursery.start_soon(connect)
            peer = await broker.arrived()
            await peer.receive()
            message = Publish("t", b"x", 2, packet_id=7)
            parts = encode(message, 5) + encode(Pubcomp(1), 5) + encode(message, 5) + encode(message, 5)[:-1]
            raw = CONNACK + parts
            for at in range(0, len(raw), size):
                await peer.send_bytes(raw[at : at + size])
                await trio.testing.wait_all_tasks_blocked()
            packets, chunk = made[0].stream.take_received()
            if size == 2**18:
                assert chunk == parts[-(2 * len(encode(message, 5)) - 1) :]
            assert packets == [message]
            await made[0].stream.close()

    ask()
