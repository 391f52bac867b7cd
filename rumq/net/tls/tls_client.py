"""The client's side of TLS on a connection of the pump: this process has dialled. RFC 8446.

Everything but the handshake is as on the server's side. The handshake begins when the socket is connected."""

from __future__ import annotations

import errno
import socket
import ssl

from rumq.net.tls.tls import READ_BYTES, TlsServer, TlsStream
from rumq.net.tls.tls_faults import describe_fault
from rumq.net.tls.tls_options import TlsOptions, make_context
from rumq.net.transport.stream_connection import StreamConnection


class TlsClient(TlsServer):
    """TLS of the connections that this process dials: its own certificate, and the authority of the others'.

    Any certificate of that authority will do, whatever name is in it: let the authority be the cluster's own."""

    def __init__(self, options: TlsOptions) -> None:
        """raises: TlsSettingsError"""
        super().__init__(options)
        self.context = make_client_context(options)

    def reload(self, options: TlsOptions) -> None:
        """raises: TlsSettingsError, and nothing has changed"""
        self.context = make_client_context(options)


def make_client_context(options: TlsOptions) -> ssl.SSLContext:
    """raises: TlsSettingsError"""
    server = make_context(options)  # it finds what is wrong with the files
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = server.minimum_version
    context.load_cert_chain(options.certfile, options.keyfile or options.certfile, lambda: options.key_password)
    context.load_verify_locations(options.cafile)
    return context


class TlsClientStream(TlsStream):
    """A `rumq.net.stream.StreamLayer`."""

    __slots__ = ()

    def __init__(self, client: TlsClient, sock: socket.socket, owner: StreamConnection) -> None:
        super().__init__(client, sock, owner, None)

    def push(self) -> bool:
        """As above; before TLS is open nothing can be put, so there is always something that waits."""
        if self.is_open:
            return super().push()
        if not self._began:
            self._began = True
            server = self._server
            self._tls = server.context.wrap_bio(server.incoming, server.outgoing, server_side=False)
            try:
                self._step()
            except BlockingIOError:
                pass
        super().push()
        return False

    def _shake_hands(self) -> None:
        """Make one step of the handshake. raises: BlockingIOError until it is done, OSError"""
        server, owner = self._server, self._owner
        if not self._began:
            self._sock.recv_into(server.scratch)  # raises, for it is not connected
            raise BlockingIOError
        if self._kept is not None:
            self._take_kept()
        else:
            got = self._sock.recv_into(server.scratch)
            if got == 0:
                raise OSError(errno.EPROTO, "the other node closed before the TLS handshake was over")
            server.incoming.write(server.view[:got])
            if got == READ_BYTES or owner.ended:
                owner.pump.read_next_turn(owner)
        self._step()

    def _step(self) -> None:
        owner = self._owner
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except ssl.SSLError as fault:
            raise OSError(errno.EPROTO, describe_fault(fault, self._tls)) from None
        finally:
            self._empty_buffers()
        self.is_open = True
        self._more = True  # behind the last bytes of the handshake
        owner.opened(self)
        owner.blocked = self.pending()
        if not owner.dirty:
            owner.dirty = True
            owner.pump.dirty.append(owner)
