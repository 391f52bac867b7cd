"""TLS, RFC 8446, by OpenSSL over memory BIOs.

All connections of a listener share two BIOs, which are empty between two calls: an idle connection costs OpenSSL's
state and no buffer. docs/decisions/0010-transports.md"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any

from rumq.net.certificate import BadDer, PeerCertificate, peer_certificate
from rumq.net.connection_handover import HandoverState, encode_state
from rumq.net.stream import ReadBuffer, WriteBuffer
from rumq.net.tls.tls_faults import describe_fault
from rumq.net.tls.tls_options import TlsOptions, make_context
from rumq.net.transport.protocol_mismatch import answer, describe_on_tls
from rumq.net.transport.stream_connection import StreamConnection
from rumq.net.transport.transport_handshake import TransportHandshakes

READ_BYTES = 1 << 16
RECORD_BYTES = 1 << 14
HANDSHAKE_RECORD = 0x16


class TlsServer:
    """TLS of one listener: its certificate, the authorities it trusts, and the buffers that its connections share."""

    def __init__(self, options: TlsOptions) -> None:
        """raises: TlsSettingsError"""
        self.context = make_context(options)
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.scratch = bytearray(READ_BYTES)
        self.view = memoryview(self.scratch)

    def reload(self, options: TlsOptions) -> None:
        """Read the files again, for new connections; the others keep theirs.

        raises: TlsSettingsError, and nothing has changed"""
        self.context = make_context(options)


class TlsStream:
    """The server's side of one connection. A `rumq.net.stream.StreamLayer`."""

    can_move = False

    __slots__ = (
        "_began",
        "_ended",
        "_handshakes",
        "_kept",
        "_more",
        "_owner",
        "_server",
        "_sock",
        "_tls",
        "_unsent",
        "is_open",
    )

    def __init__(
        self,
        server: TlsServer,
        sock: socket.socket,
        owner: StreamConnection,
        handshakes: TransportHandshakes | None,
        kept: bytes = b"",
    ) -> None:
        """handshakes: None where we are the client; kept: bytes that were read before TLS began"""
        self.is_open = False
        self._server = server
        self._sock = sock
        self._owner = owner
        self._handshakes: TransportHandshakes | None = handshakes
        self._tls: Any = None  # until bytes come: a silent connection costs no state of OpenSSL
        self._kept = kept or None  # read from the socket, and not by OpenSSL yet
        self._unsent: bytes | memoryview | None = None
        self._began = False
        self._more = False  # OpenSSL, or `_kept`, may hold plain bytes already
        self._ended = False

    def fileno(self) -> int:
        return self._sock.fileno()

    # What comes in

    def recv_into(self, view: WriteBuffer) -> int:
        if not self.is_open:
            self._shake_hands()
        try:
            return self._read(view)
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, describe_fault(fault)) from None
        finally:
            self._empty_buffers()

    def _read(self, view: WriteBuffer) -> int:
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
                    self._owner.pump.read_next_turn(self._owner)
                break
            if n - before < got >> 1:  # small records cost most: other connections come between them
                self._owner.pump.read_next_turn(self._owner)
                break
        if n == wanted:
            self._more = True
            self._owner.pump.read_next_turn(self._owner)
        elif n == 0 and not self._ended:
            raise BlockingIOError
        elif self._ended and n:
            self._owner.pump.read_next_turn(self._owner)
        return n

    def _open_records(self, view: WriteBuffer, n: int, wanted: int) -> int:
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

    def _empty_buffers(self) -> None:
        """Move what is left in the shared BIOs to this connection: the next call is another's."""
        server = self._server
        if server.incoming.pending:
            self._kept = server.incoming.read()
        if server.outgoing.pending:
            self._gather()
            try:
                if not self.push():
                    self._owner.blocked = True
            except OSError:
                pass  # the next read fails

    # The handshake

    def _shake_hands(self) -> None:
        """Make one step of the handshake. raises: BlockingIOError until it is done, OSError"""
        handshakes, owner = self._handshakes, self._owner
        handshake = owner.handshake
        assert handshakes is not None and handshake is not None
        if not handshakes.may_run(handshake):
            raise BlockingIOError
        if not handshakes.has_time():
            handshakes.keep_running(handshake)
            owner.pump.read_next_turn(owner)
            raise BlockingIOError
        server = self._server
        if self._kept is None:
            got = self._sock.recv_into(server.scratch)
            if got == 0:
                raise OSError(errno.EPROTO, "the client closed before the TLS handshake was over")
            if got == READ_BYTES or owner.ended:
                owner.pump.read_next_turn(owner)
            data: ReadBuffer = server.view[:got]
        else:
            data, self._kept = self._kept, None
            owner.pump.read_next_turn(owner)  # and the socket may hold more
        handshake.progress()
        if not self._began:
            self._began = True
            if data[0] != HANDSHAKE_RECORD:
                first = bytes(data[:512])
                self._unsent = answer(first) or None
                self._try_push()
                raise OSError(errno.EPROTO, describe_on_tls(first))
            self._tls = server.context.wrap_bio(server.incoming, server.outgoing, server_side=True)
        began = handshakes.clock()
        try:
            server.incoming.write(data)
            self._tls.do_handshake()
            self._check_still_valid()
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, describe_fault(fault, self._tls)) from None
        finally:
            handshakes.count_step(began)
            self._empty_buffers()
        self.is_open = True
        self._handshakes = None
        self._more = True  # behind the last bytes of the handshake
        owner.opened(self)

    def _check_still_valid(self) -> None:
        """A resumed session was verified when it was first opened: its certificate may have expired since."""
        if self._tls.session_reused:
            certificate = self.certificate()
            if certificate is not None and certificate.not_after < time.time():
                when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(certificate.not_after))
                raise OSError(errno.EPROTO, f"the client's certificate ({certificate.subject}) expired on {when}")

    @property
    def security(self) -> str:
        """Version and cipher, for the operator; empty until the handshake is over."""
        if not self.is_open:
            return ""
        cipher = self._tls.cipher()
        return ", ".join(filter(None, (self._tls.version(), cipher[0] if cipher else "")))

    def certificate(self) -> PeerCertificate | None:
        """Of the client, if it has sent one."""
        der = self._tls.getpeercert(binary_form=True)
        if der is None:
            return None
        try:
            return peer_certificate(der, self._tls.getpeercert() or {})
        except BadDer:
            return None

    def handover_state(self, certificate: PeerCertificate | None) -> bytes:
        return encode_state(HandoverState(certificate))

    # What goes out

    def put(self, buffers: Sequence[ReadBuffer], size: int) -> None:
        view = memoryview(buffers[0] if len(buffers) == 1 else b"".join(buffers))
        write = self._tls.write
        try:
            at = 0
            while at < size:
                at += write(view[at : at + RECORD_BYTES])
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, describe_fault(fault)) from None
        finally:
            self._gather()

    def _gather(self) -> None:
        """Move what is to be sent out of the shared BIO."""
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
        """Send close_notify if the socket is free, and end the sending side. RFC 8446, 6.1"""
        if self.is_open and self._unsent is None:
            try:
                self._tls.unwrap()
            except (OSError, ValueError):
                pass  # it wants the client's close_notify, which is not waited for
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
