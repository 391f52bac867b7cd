"""TLS: handshakes and records that were changed on their way. OpenSSL refuses them; the stream round it must say so.

The bytes of another connection must not be left in what connections share, and whoever fails fails alone."""

import ssl
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from rumq.net.tls.tls import TlsServer, TlsStream
from rumq.net.transport.transport_handshake import TransportHandshake
from tests.fuzz.campaign import Target, Wrong
from tests.fuzz.kernels.mutate import Mutator
from tests.net.authorities import Authorities

SENT = b"the client's bytes, " * 9
OTHERS = [
    b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00", b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
    b"\x15\x03\x03\x00\x02\x02\x28", b"\x17\x03\x03\x40\x00" + bytes(40), b"\x16\x03\x01\x40\x01\x01",
]  # fmt: skip
FLIGHTS = ("hello", "answer", "records")


class Tls(Target):
    name = "tls"
    inputs = 40

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        authorities = Authorities(Path(self._folder.name))
        self._server = TlsServer(authorities.mutual(client_certificates="optional"))
        self._contexts = []
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for certificate in (None, "client", "stranger"):
                context = ssl.create_default_context(cafile=authorities.path("ca"))
                context.maximum_version = version
                if certificate is not None:
                    context.load_cert_chain(authorities.path(certificate), authorities.path(certificate, "key"))
                self._contexts.append((certificate, context))

    def close(self) -> None:
        self._folder.cleanup()

    def run(self, seed: int) -> Counter[str]:
        self.counts: Counter[str] = Counter()
        random = Random(seed)
        for number in range(self.inputs):
            self.current = (seed, number)
            certificate, context = random.choice(self._contexts)
            wrong = random.choice((*FLIGHTS, "nothing")) if random.randrange(10) else "all"
            client = Client(context, random, "" if certificate == "stranger" else wrong)
            for _ in self.each([(certificate, wrong, client)]):
                self._serve(client, wrong == "nothing" and certificate != "stranger")
        return self.counts

    def _serve(self, client: "Client", all_right: bool) -> None:
        owner = Owner(client)
        handshakes = SimpleNamespace(
            clock=lambda: 0.0,
            may_run=lambda handshake: True,
            has_time=lambda: True,
            count_step=lambda since: None,
        )
        stream = TlsStream(self._server, client, owner, handshakes)  # type: ignore[arg-type]
        view, found, ended = memoryview(bytearray(4096)), bytearray(), ""
        for _ in range(100):
            client.act()
            if self._server.incoming.pending or self._server.outgoing.pending:
                raise Wrong("something was left in what all connections share")
            try:
                count = stream.recv_into(view)
            except BlockingIOError:
                if not client.coming and not owner.is_again and client.is_done:
                    break
                owner.is_again = False
                continue
            except OSError as fault:
                ended = str(fault.strerror)
                if not ended:
                    raise Wrong("an end without a word") from fault
                break
            if count == 0:
                ended = "closed"
                break
            if not stream.is_open:
                raise Wrong("bytes out of a handshake")
            found += view[:count]
        if not SENT.startswith(found[: len(SENT)]) or (all_right and found != SENT):
            raise Wrong(f"{bytes(found)!r} came out; {ended}")
        if stream.is_open and ended in ("", "closed"):
            stream.certificate()
            stream.put([b"answer"], 6)
            stream.push()
            stream.shutdown(1)
        if self._server.incoming.pending or self._server.outgoing.pending:
            raise Wrong("something was left in what all connections share")
        self.counts["open" if stream.is_open else "waits" if not ended else "refused"] += 1


class Client:
    """A client, its TLS, and the socket between the two. wrong: which flight is changed on its way"""

    def __init__(self, context: ssl.SSLContext, random: Random, wrong: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self._random, self._wrong = random, wrong
        self.coming = bytearray()
        self.is_done = False
        self._flights = list(FLIGHTS)
        if wrong == "all":
            self.coming += Mutator(OTHERS, False).inputs(1, random.getrandbits(64), 3)[0]
            self.is_done = True

    def act(self) -> None:
        """Do what can be done with what has come from the server."""
        if self.is_done:
            return
        try:
            self._tls.do_handshake()
            self._send("answer")
            self._tls.write(SENT[:50])
            self._tls.write(SENT[50:])
            self._send("records")
            self.is_done = True
        except ssl.SSLWantReadError:
            self._send(self._flights[0] if self._flights else "")
            if "hello" in self._flights:
                self._flights.remove("hello")
        except ssl.SSLError:
            self._send("")
            self.is_done = True

    def _send(self, flight: str) -> None:
        data = self._outgoing.read()
        if data and flight == self._wrong:
            data = Mutator([data], False).inputs(1, self._random.getrandbits(64), 1)[0]
        if data and flight in self._flights:
            self._flights.remove(flight)
        self.coming += data
        if flight == self._wrong:
            self.is_done = True

    # Its socket

    def recv_into(self, view: Any) -> int:
        if not self.coming:
            raise BlockingIOError
        size = min(len(self.coming), len(view), self._random.choice((1, 5, 100, 1 << 16, 1 << 16)))
        view[:size] = self.coming[:size]
        del self.coming[:size]
        return size

    def send(self, data: Any) -> int:
        self._incoming.write(data)
        return len(data)

    def shutdown(self, how: int) -> None: ...


class Owner:
    """In the place of `rumq.net.transport.stream_connection.StreamConnection`."""

    ended = blocked = False

    def __init__(self, client: Client) -> None:
        self.is_again = False
        self.pump = SimpleNamespace(read_next_turn=self._again)
        self.handshake = TransportHandshake(
            SimpleNamespace(finish=lambda handshake: None, progress=lambda handshake, first: None),
            self,
            "tls",
        )  # type: ignore[arg-type]

    def _again(self, owner: Any) -> None:
        self.is_again = True

    def opened(self, stream: Any) -> None:
        self.handshake.finish()
