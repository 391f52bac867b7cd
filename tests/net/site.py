"""One pump with listeners, in the thread of the test: whoever connects is echoed, and what is told is kept."""

import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.auth.connection_rate import ConnectionRate
from rumq.net.connection import Connection
from rumq.net.listening.listener import Acceptor, NewConnection, open_sockets
from rumq.net.listening.transports import ConnectionSetup, Transports
from rumq.net.pump import Pump
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.net.turn_handler import TurnHandler

TURNS_MAX = 2000
SECONDS_MAX = 0.02  # of a turn in which nothing happens


def local() -> socket.socket:
    """A listener whose clients, and what they send, are there at once: over TCP they may come a turn or two later."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind("")  # the kernel finds a name, unix(7)
    sock.listen(100)
    sock.setblocking(False)
    return sock


def dialled(address: Any) -> socket.socket:
    """A connection to what `Site.listen` returned."""
    if isinstance(address, tuple):
        return socket.create_connection(address)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(address)
    return sock


class Echo:
    """A link that sends back what comes, unless it is silent."""

    is_bus = False
    session = flow = None

    def __init__(self, connection: Connection) -> None:
        self.transport = connection
        self.got = bytearray()
        self.lost_why: str | None = None
        self.is_silent = False

    def receive(self, data: Any, pos: int, end: int) -> int:
        self.got += data[pos:end]
        if not self.is_silent:
            self.transport.write(bytes(data[pos:end]))
        return end

    def lost(self, why: str) -> None:
        self.lost_why = why

    def end(self, *, with_will: bool) -> None:
        self.transport.close()


class Site(TurnHandler):
    def __init__(
        self,
        *,
        seconds_max: float = 10.0,
        handshakes_max: int = 100,
        link: Callable[[Connection], Any] = Echo,
    ) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.links: list[Any] = []
        self.now = 1000.0
        self._link = link
        self._later: list[tuple[float, Callable[[], None]]] = []
        self.pump = Pump(self)
        self.handshakes = TransportHandshakes(
            self.pump, later=self.later, event=self.event, seconds_max=seconds_max, count_max=handshakes_max,
            clock=lambda: self.now,
        )  # fmt: skip
        self.listeners: list[Acceptor] = []

    # What the pump asks

    def begin_turn(self) -> float:
        return self.now

    def end_turn(self) -> None:
        for entry in [entry for entry in self._later if entry[0] <= self.now]:
            self._later.remove(entry)
            entry[1]()

    def end_quiet_turn(self) -> None:
        self.end_turn()

    def drained(self, connection: Connection) -> None: ...

    def crashed(self, connection: Connection) -> None:
        raise

    def seconds_to_next_deadline(self) -> float:
        return 0.0

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._later.append((self.now + seconds, call))

    def event(self, name: str, **fields: Any) -> None:
        self.events.append((name, fields))

    def welcome(self, connection: Connection) -> Any:
        self.links.append(self._link(connection))
        return self.links[-1]

    # What a test asks

    def listen(
        self, transports: Transports, sock: socket.socket | None = None,
        rate: ConnectionRate[NewConnection] | None = None,
    ) -> Any:  # fmt: skip
        """Returns the address."""
        listener = Acceptor(
            sock or open_sockets("127.0.0.1", 0, 100)[0],
            ConnectionSetup(transports, self.handshakes, self.pump, 1 << 20, self.welcome),
            connections_max=1000, event=self.event, later=self.later, rate=rate, clock=lambda: self.now,
        )  # fmt: skip
        self.listeners.append(listener)
        return listener.sock.getsockname()

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.pump.turn(SECONDS_MAX)

    def until(self, is_so: Callable[[], Any]) -> Any:
        """Turns until something is so; returns it."""
        for _ in range(TURNS_MAX):
            found = is_so()
            if found:
                return found
            self.pump.turn(SECONDS_MAX)
        raise AssertionError(f"it never came; told: {self.events}")

    def why(self) -> str:
        """Why the one connection that was refused was; the event is taken away."""
        name, fields = self.until(lambda: self.events).pop()
        assert name == "connection.refused" and not self.events, (name, fields, self.events)
        return str(fields["why"])

    def end(self) -> None:
        for listener in self.listeners:
            listener.close()
        self.pump.close()


class TlsClient:
    """A client whose socket never waits; the test gives the site its turns."""

    def __init__(
        self, site: Site, address: Any, context: ssl.SSLContext, session: ssl.SSLSession | None = None
    ) -> None:
        self._site = site
        self.sock = address if isinstance(address, socket.socket) else dialled(address)
        self.sock.setblocking(False)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost", session=session)
        self.ended = False

    def out(self, cut: int = 0) -> None:
        """Send what TLS has made, `cut` bytes at a time with a turn after each, or all at once."""
        view = memoryview(self.outgoing.read())
        while view:
            try:
                view = view[self.sock.send(view[: cut or len(view)]) :]
            except BlockingIOError:
                pass
            if cut or view:
                self._site.turn()

    def into(self) -> None:
        try:
            data = self.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if data:
            self.incoming.write(data)
        else:
            self.ended = True
            self.incoming.write_eof()

    def step(self, call: Callable[[], Any], cut: int = 0) -> Any:
        """What `call` returns, once there are bytes enough for it; None once the connection has ended."""
        for _ in range(2000):
            try:
                found = call()
                self.out(cut)
                return found
            except ssl.SSLWantReadError:
                self.out(cut)
                self._site.turn()
                self.into()
                if self.ended and not self.incoming.pending:
                    return None
        raise AssertionError("it never came")

    def shake_hands(self, cut: int = 0) -> None:
        self.step(self.tls.do_handshake, cut)

    def refused(self) -> None:
        """The broker ends it with an alert: at once, or, in 1.3, when the handshake is over for the client."""
        self.shake_hands()
        self.read(1)

    def read(self, size: int) -> bytes:
        """`size` bytes; fewer where the connection ends."""
        found = bytearray()
        while len(found) < size:
            more = self.step(partial(self.tls.read, size - len(found)))
            if not more:
                break
            found += more
        return bytes(found)

    def write(self, data: bytes, cut: int = 0) -> None:
        at = 0
        while at < len(data):
            at += self.tls.write(data[at:])
        self.out(cut)

    def close(self) -> None:
        self.sock.close()


def cut_back_to_whole_messages(site: Site, connection: Connection, read: Callable[[int], bytes], offers: int) -> None:
    """A client that does not read is offered more messages than its outbox keeps, each of which can be read again.

    read: so many bytes of what the client gets. Whole messages stay, and what is written afterwards follows them."""
    messages = b"".join(bytes([n]) * 1000 for n in range(250))
    cuts: list[int] = []

    class Owner:
        def cut_at(self, owned: object, sent: int) -> int:
            cuts.append(-(-sent // 1000) * 1000)
            return cuts[-1]

    for _ in range(offers):
        connection.write(messages, (Owner(),))
    site.turn()
    assert connection.blocked and cuts and not any(cuts[1:])
    assert sum(len(data) for data, _ in connection.unsent()) < 1000
    connection.write(b"the end")
    whole = messages * (offers - len(cuts)) + messages[: cuts[0]] + b"the end"
    assert read(len(whole)) == whole
