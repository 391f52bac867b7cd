"""What clients did and saw, each with the step in which it was: plain facts, which `model` judges."""

from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Message:
    """One publication, or a will. sent, acked: steps; repeats: how often it was sent again; connection: its publisher's

    acked: PUBACK or PUBREC came. A will is neither sent nor acked."""

    number: int
    publisher: str
    connection: int
    topic: str
    qos: int
    retain: bool
    sent: int
    acked: int | None = None
    repeats: int = 0
    is_will: bool = False


@dataclass(eq=False, slots=True)
class Subscribed:
    """asked, granted: steps; leaving, gone: UNSUBSCRIBE was sent, UNSUBACK came."""

    topic_filter: str
    plain: str
    qos: int
    no_local: bool
    as_published: bool
    handling: int
    asked: int
    share: bool = False
    granted: int | None = None
    leaving: int | None = None
    gone: int | None = None


@dataclass(eq=False, slots=True)
class Delivery:
    message: int
    topic: str
    qos: int
    retain: bool
    dup: bool
    step: int


@dataclass(eq=False, slots=True)
class Session:
    """What a client and the broker have in common between two CONNACKs without a session present.

    ending: from when on it may have ended; torn: steps at which its connection was lost, or taken over"""

    client_id: str
    begun: int
    lasting: bool
    window: int
    subscriptions: list[Subscribed] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    ending: int | None = None
    torn: list[int] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Connection:
    """asked, granted, over: steps; how: it ended ("disconnect", "cut", "taken over", "closed"), "" while it lasts.

    delay: of the will, seconds; at: monotonic, when it ended; was_heard: its DISCONNECT, before the next connection"""

    number: int
    client_id: str
    clean: bool
    lasting: bool
    asked: int
    will: Message | None = None
    delay: float = 0.0
    granted: int | None = None
    present: bool = False
    over: int | None = None
    at: float = 0.0
    how: str = ""
    was_heard: bool = True


class History:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.sessions: list[Session] = []
        self.connections: list[Connection] = []
        self.crashes: list[int] = []  # steps
        self.step = 0
        self.faults: list[str] = []  # what no broker may do, seen at once

    def message(
        self, publisher: str, connection: int, topic: str, qos: int, *, retain: bool, is_will: bool = False
    ) -> Message:
        message = Message(len(self.messages), publisher, connection, topic, qos, retain, self.step)
        message.is_will = is_will
        self.messages.append(message)
        return message
