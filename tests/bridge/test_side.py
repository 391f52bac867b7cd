"""The version of MQTT at the other broker: 5, and 3.1.1 where 5 is refused; never so because a line was cut."""

import pytest
import trio

from rumq.bridge.side import AUTO, REMOTE, Side, SideConnection, open_side
from rumq.client.session.options import ConnectOptions
from rumq.errors import ClientError
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


async def opened(broker: FakeBroker, version: int = AUTO, **more: bool) -> SideConnection:
    options = ConnectOptions(client_id="c", session_expiry=99, keep_alive=10)
    return await open_side(Side(REMOTE, broker.open_stream, options, {}, version=version, **more), 10)


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
