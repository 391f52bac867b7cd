"""A broker as the protocol of one connection sees it, without sockets, disks and turns: calls are noted or done."""

from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.identity import Challenge, Credentials, Identity, Work
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import PublishRefusal
from rumq.session.connection.pending_acks import AckPort
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.handshake.handshake import Handshake
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.ports.backpressure import BackpressureBits
from rumq.session.ports.clock import TurnClock
from rumq.session.ports.transport import ConnectionHandler, Transport
from rumq.session.ports.turn_view import TurnView
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.session.state.shard_totals import ShardTotals
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Packet

METHOD = "STEPS"


class Commands(list[Any]):
    put = list.append


class Steps:
    """A method of enhanced authentication that takes the steps it is given, once for each attempt."""

    name = METHOD

    def __init__(self, *attempts: tuple[Any, ...]) -> None:
        self._attempts = list(attempts)

    def check(self, credentials: Credentials) -> Generator[Any, Any, Identity | None]:
        for step in self._attempts.pop(0):  # noqa: UP028 - the iterator of a tuple takes no answers
            yield step
        return Identity("ann", method=METHOD)


CHALLENGE = Challenge(b"who?")
WORK = Work("hash", lambda: None)


def by_method(*attempts: tuple[Any, ...]) -> ListenerPolicy:
    return ListenerPolicy(authenticator=Authenticator(anonymous=True, enhanced=[Steps(*attempts)]))


class Broker(AckPort):
    """Every port of the broker in one."""

    journal_bit = 2

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.logins = self.publishing = self.delivery = self.acks = self
        self.clock = TurnClock(1_760_000_000_000_000, 1000.0)
        self.refused: tuple[Reason, str] | None = None  # by the operator
        self.commands = Commands()
        self.journal = JournalRecorder()
        self.wills: list[str] = []
        self.released: list[Any] = []  # publisher numbers of sessions that ended
        self.registry = Registry(
            self.commands,
            lambda _, will, __: self.wills.append(will.topic),
            self.journal,
            self.released.append,
        )
        self.shard_totals = ShardTotals()
        self.batches = [Batch()]
        self.topics: Any = {}
        self.own_topics: Any = {}
        self.topics_max = 100
        self.change_waits: list[float] = []  # of who subscribes or unsubscribes
        self.topic_waits: list[float | None] = []  # of who publishes to new topics
        self.keep_alive_monitor = KeepAliveMonitor()
        self.backpressure = BackpressureBits()
        self.turn_view = TurnView(self.clock, self.batches, self.backpressure)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.held: list[Any] = []
        self.holds = False  # whether acknowledgements wait for `commit`
        self.checks: list[Callable[[Any, BaseException | None], None]] = []
        self.next_turns: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.confirmations: list[Callable[[], None]] | None = None  # None: every shard has confirmed already
        self.homes_away: set[str] = set()  # keys of groups
        self.refusal: PublishRefusal | None = None
        self.refreshed: list[ConnectionHandler] = []
        self.redelivered: list[Any] = []
        self.continued: list[Any] = []
        self.crashes: list[Any] = []
        self.is_full = self.lives_elsewhere = False
        self.slowed: list[bool] = []
        self.undecided: Any = SimpleNamespace(concerns=lambda session: False)

    def may_buffer(self, client: Any, size: int) -> bool:
        return True

    def set_waiting(self, client: Any, for_broker: bool) -> None: ...

    def hand_over(self, client: Any, client_id: str, data: bytes) -> bool:
        return self.lives_elsewhere

    def check(self, client: Any, work: Work, done: Callable[[Any, BaseException | None], None]) -> bool:
        self.checks.append(done)
        return True

    def delay_refusal(self, client: Any, answer: Callable[[], None]) -> None:
        self.timers.append((1.0, answer))

    def has_room(self, client: Any) -> bool:
        return not self.is_full

    def login_refusal(self, client: Any, client_id: str, user: str | None) -> tuple[Reason, str] | None:
        return self.refused

    def assigned_client_id(self, prefix: str) -> str:
        return f"{prefix}1"

    def logged_in(self, client: Any) -> None: ...

    def topics_with(self, name: bytes) -> Any:
        return self.own_topics if name.startswith(b"$queues/") else self.topics

    def add_topic(self, name: bytes) -> bool:
        if len(self.topics) >= self.topics_max:
            return False
        self.topics_with(name)[name] = len(self.topics) + len(self.own_topics)
        return True

    def match_topic(self, client: Any, name: bytes) -> float | None:
        return self.topic_waits.pop(0) if self.topic_waits else None

    def change_filters(self, client: Any) -> float:
        return self.change_waits.pop(0) if self.change_waits else 0.0

    def refuse_topic(self, name: bytes, client: Any, user_topics_max: int | None) -> str:
        return "too many topics"

    def refuse_publish(self, handler: Any, partition: int, *, is_unanswerable: bool) -> PublishRefusal | None:
        return None if is_unanswerable else self.refusal

    def publisher_number(self, partition: int, client_id: str) -> int:
        return 1

    def confirm(self, asked: Any, then: Callable[[], None], *, publishers: bool = False) -> bool:
        if self.confirmations is None:
            return True
        self.confirmations.append(then)
        return False

    def is_home_away(self, key: str) -> bool:
        return key in self.homes_away

    def settle(self) -> None: ...

    def pause_publisher(self, client: Any, bulk: bool) -> None:
        self.slowed.append(bulk)

    def refresh(self, handler: ConnectionHandler) -> None:
        self.refreshed.append(handler)

    def in_next_turn(self, transport: Any) -> None:
        self.continued.append(transport)

    def send_again(self, client: Any) -> None:
        self.redelivered.append(client)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((seconds, call))

    def next_turn(self, call: Callable[[], None]) -> None:
        self.next_turns.append(call)

    def crashed(self, connection: Any) -> None:
        self.crashes.append(connection)
        connection.link.end(with_will=True)

    def event(self, name: str, client: Any, **fields: object) -> None:
        self.events.append((name, {"client_id": client.client_id, **fields}))

    def told(self, name: str) -> list[dict[str, Any]]:
        return [fields for each, fields in self.events if each == name]

    # Acknowledgements, as the shard's tracker releases them

    def promise(self, acks: Any, parts: int = 0) -> None:
        acks.wire.ack_parts |= parts
        self.held.append(acks)
        if not self.holds:
            self.commit()

    def promise_messages(self, acks: Any, data: object) -> None:
        self.held.append((acks, data))
        acks.barriers += 1

    def commit(self) -> None:
        """Everything so far is durable."""
        held, self.held = self.held, []
        for each in held:
            acks, data = each if isinstance(each, tuple) else (each, None)
            if acks.closed:
                continue
            if data is not None:
                acks.barriers -= 1
            else:
                data = bytes(acks.wire.acks or b"")
                acks.wire.unacknowledged -= acks.wire.pubacks
                acks.wire.acks = None
                acks.wire.ack_parts = acks.wire.pubacks = 0
                was_barrier, acks.raised = acks.raised, False
                if not was_barrier:
                    acks.transport.write(data)
                    continue
            acks.transport.write(data)
            acks.released()


class Wire(Transport):
    """The client's end and its transport. paused: nothing is read from it"""

    peer = "192.0.2.1:7"

    def __init__(self, broker: Broker, policy: ListenerPolicy | None = None, version: int = 5) -> None:
        self.broker, self.version = broker, version
        self.room, self.refused, self.closed, self.paused = 1 << 30, False, False, False
        self.is_quiet = False
        self.bytes_in = self.bytes_out = 0
        self._bytes = bytearray()
        self.link: Any = Handshake(broker, self, policy or ListenerPolicy())  # type: ignore[arg-type]

    def write(self, data: Any, owner: object = None) -> None:
        self._bytes += data

    def waits(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True

    def say(self, *packets: p.Packet | bytes) -> int:
        """Returns how many bytes were taken."""
        data = b"".join(each if isinstance(each, bytes) else encode(each, self.version) for each in packets)
        return int(self.link.receive(bytearray(data), 0, len(data)))

    def hears(self) -> list[Packet]:
        """What was sent since the last call."""
        found = []
        while (size := frame_size(bytes(self._bytes[:5]))) is not None:
            head, whole = size
            found.append(decode(self._bytes[0], bytes(self._bytes[head:whole]), self.version))
            del self._bytes[:whole]
        return found


def connect(client_id: str = "c", version: int = 5, **fields: Any) -> p.Connect:
    return p.Connect(client_id, version, fields.pop("clean_start", True), 60, **fields)


def idle(broker: Broker, *, policy: ListenerPolicy | None = None, version: int = 5, **fields: Any) -> Wire:
    """A client behind its CONNACK, which has asked for nothing yet."""
    wire = Wire(broker, policy, version)
    packet = connect(version=version, **fields)
    assert wire.say(packet) and not wire.closed, broker.events
    wire.hears()
    return wire


def connected(broker: Broker, *, policy: ListenerPolicy | None = None, version: int = 5, **fields: Any) -> Wire:
    """A client behind its CONNACK, which has asked for something before: its connection is no idle one."""
    wire = idle(broker, policy=policy, version=version, **fields)
    wire.link.ensure_active()
    return wire
