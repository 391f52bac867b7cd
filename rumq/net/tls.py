"""TLS between the pump's bytes and the wire's, RFC 8446; done by OpenSSL, in memory.

All connections of a server share two memory BIOs, which are empty between two calls: what one connection costs while
it is idle is OpenSSL's state, no buffer (docs/decisions/0010-transports.md). Knows no packet."""

from __future__ import annotations

import errno
import socket
import ssl
import time
from typing import Any

from rumq.net.certificate import BadDer, PeerCertificate, peer_certificate
from rumq.net.connection_handover import Facts, packed
from rumq.net.protocol_mismatch import answer, said_without_tls
from rumq.net.stream_connection import StreamConnection
from rumq.net.tls_faults import sentence
from rumq.net.tls_options import TlsOptions, context_of
from rumq.net.transport_handshake import TransportHandshakes

READ_BYTES = 1 << 16
RECORD_BYTES = 1 << 14
HANDSHAKE_RECORD = 0x16


class TlsServer:
    """One listener's side of TLS: its certificate, whom it believes, and what its connections share."""

    def __init__(self, options: TlsOptions) -> None:
        """raises: TlsSettingsError"""
        self.context = context_of(options)
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.scratch = bytearray(READ_BYTES)
        self.view = memoryview(self.scratch)

    def reload(self, options: TlsOptions) -> None:
        """New connections use what the files hold now; those that are here keep what they have.

        raises: TlsSettingsError, and nothing has changed"""
        self.context = context_of(options)


class TlsStream:
    """The server's side of one connection. A `rumq.net.stream_connection.Stream`."""

    can_move = False

    __slots__ = (
        "_began", "_ended", "_kept", "_more", "_openings", "_owner", "_server", "_sock", "_tls", "_unsent", "is_open",
    )  # fmt: skip

    def __init__(
        self,
        server: TlsServer,
        sock: socket.socket,
        owner: StreamConnection,
        openings: TransportHandshakes,
        kept: bytes = b"",
    ) -> None:
        """kept: bytes that were read before TLS began"""
        self.is_open = False
        self._server = server
        self._sock = sock
        self._owner = owner
        self._openings: TransportHandshakes | None = openings
        self._tls: Any = None  # until something comes: one that is silent costs no state of OpenSSL
        self._kept = kept or None  # read from the socket, and not taken by OpenSSL yet
        self._unsent: bytes | memoryview | None = None
        self._began = False
        self._more = False  # OpenSSL, or `_kept`, may hold plain bytes already
        self._ended = False

    def fileno(self) -> int:
        return self._sock.fileno()

    # What comes in

    def recv_into(self, view: Any) -> int:
        if not self.is_open:
            self._shake_hands()
        try:
            return self._read(view)
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, sentence(fault)) from None
        finally:
            self._leave_nothing()

    def _read(self, view: Any) -> int:
        if self._ended:
            return 0
        server, wanted = self._server, len(view)
        n = 0
        if self._more:
            self._more = False
            self._take_kept()
            n = self._open_records(view, 0, wanted)
        while n < wanted and not self._ended:
            try:
                got = self._sock.recv_into(server.scratch)
            except BlockingIOError:
                break
            if got == 0:
                self._ended = True
                break
            server.incoming.write(server.view[:got])
            before = n
            n = self._open_records(view, n, wanted)
            if got < READ_BYTES:
                if self._owner.ended:
                    self._owner.pump.again(self._owner)
                break
            if n - before < got >> 1:  # small records cost most: others have their turn between them
                self._owner.pump.again(self._owner)
                break
        if n == wanted:
            self._more = True
            self._owner.pump.again(self._owner)
        elif n == 0 and not self._ended:
            raise BlockingIOError
        elif self._ended and n:
            self._owner.pump.again(self._owner)
        return n

    def _open_records(self, view: Any, n: int, wanted: int) -> int:
        """Decrypt what is there into `view` from `n` on; returns where it ends."""
        read = self._tls.read
        rest = memoryview(view)
        try:
            while n < wanted:
                got: int = read(wanted - n, rest[n:])
                if not got:
                    self._ended = True  # close_notify
                    break
                n += got
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = True
        return n

    def _take_kept(self) -> None:
        if self._kept is not None:
            self._server.incoming.write(self._kept)
            self._kept = None

    def _leave_nothing(self) -> None:
        """What is left in the shared BIOs is this connection's: the next call is another's."""
        server = self._server
        if server.incoming.pending:
            self._kept = server.incoming.read()
        if server.outgoing.pending:
            self._gather()
            try:
                if not self.push():
                    self._owner.blocked = True
            except OSError:
                pass  # reading will tell

    # The handshake

    def _shake_hands(self) -> None:
        """Take one step. raises: BlockingIOError until it is over, OSError"""
        openings, owner = self._openings, self._owner
        assert openings is not None
        if not openings.may_shake_hands(owner.link):  # type: ignore[arg-type]
            raise BlockingIOError
        if not openings.may_work():
            openings.goes_on(owner.link)  # type: ignore[arg-type]
            owner.pump.again(owner)
            raise BlockingIOError
        server = self._server
        if self._kept is None:
            got = self._sock.recv_into(server.scratch)
            if got == 0:
                raise OSError(errno.EPROTO, "the client closed before the TLS handshake was over")
            if got == READ_BYTES or owner.ended:
                owner.pump.again(owner)
            data: Any = server.view[:got]
        else:
            data, self._kept = self._kept, None
            owner.pump.again(owner)  # and the socket may hold more
        owner.link.heard = True  # type: ignore[attr-defined]
        if not self._began:
            self._began = True
            if data[0] != HANDSHAKE_RECORD:
                first = bytes(data[:512])
                self._unsent = answer(first) or None
                self._try_push()
                raise OSError(errno.EPROTO, said_without_tls(first))
            self._tls = server.context.wrap_bio(server.incoming, server.outgoing, server_side=True)
        began = openings.clock()
        try:
            server.incoming.write(data)
            self._tls.do_handshake()
            self._check_still_valid()
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, sentence(fault, self._tls)) from None
        finally:
            openings.worked(began)
            self._leave_nothing()
        self.is_open = True
        self._openings = None
        self._more = True  # what came with the handshake's last bytes
        owner.opened(self)

    def _check_still_valid(self) -> None:
        """A resumed session was checked when it began: its certificate may have expired since."""
        if self._tls.session_reused:
            certificate = self.certificate()
            if certificate is not None and certificate.not_after < time.time():
                when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(certificate.not_after))
                raise OSError(
                    errno.EPROTO, f"the client's certificate ({certificate.subject}) expired on {when}"
                )

    def certificate(self) -> PeerCertificate | None:
        """Of a client that has shown one."""
        der = self._tls.getpeercert(binary_form=True)
        if der is None:
            return None
        try:
            return peer_certificate(der, self._tls.getpeercert() or {})
        except BadDer:
            return None

    def facts(self, certificate: PeerCertificate | None) -> bytes:
        return packed(Facts(certificate))

    # What goes out

    def put(self, buffers: list[Any], size: int) -> None:
        view = memoryview(buffers[0] if len(buffers) == 1 else b"".join(buffers))
        write = self._tls.write
        try:
            at = 0
            while at < size:
                at += write(view[at : at + RECORD_BYTES])
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, sentence(fault)) from None
        finally:
            self._gather()

    def _gather(self) -> None:
        """Take what is to be sent out of the shared BIO."""
        sealed = self._server.outgoing.read()
        self._unsent = sealed if self._unsent is None else b"".join((self._unsent, sealed))

    def push(self) -> bool:
        data = self._unsent
        if data is None:
            return True
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            return False
        if sent == len(data):
            self._unsent = None
            return True
        self._unsent = memoryview(data)[sent:]
        return False

    def pending(self) -> bool:
        return self._unsent is not None

    def _try_push(self) -> None:
        try:
            self.push()
        except OSError:
            pass

    # The end

    def shutdown(self, how: int) -> None:
        """Say close_notify if that can be said, and nothing more will come. RFC 8446, 6.1"""
        if self.is_open and self._unsent is None:
            try:
                self._tls.unwrap()
            except (OSError, ValueError):
                pass  # it waits for the client's, which we do not
            self._server.incoming.read()
            self._gather()
            self._try_push()
        self._sock.shutdown(how)

    def recv(self, size: int) -> bytes:
        return self._sock.recv(size)

    def close(self) -> None:
        self._sock.close()

    def detach(self) -> int:
        return self._sock.detach()
