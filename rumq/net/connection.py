"""One client's socket: the unfinished packet that came in, and the bytes that wait to go out.

An idle connection owns no buffer. The outbox is bounded: what comes from the log is cut back to whole frames as
soon as the socket is full, for the log still has it. Knows no packet, no log; its protocol is a `Link`."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rumq.net.pump import Pump
    from rumq.session.protocol.connected import Link

IOV_MAX = 512


class Gone:
    """Stands where the link of a connection was, once it is closed: nothing of a client stays for its socket's sake."""

    is_bus = False
    closed = True
    session = flow = who = None
    claimed = ""

    def receive(self, data: Any, pos: int, end: int) -> int:
        return end

    def lost(self, why: str) -> None: ...

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = False) -> None: ...


GONE: Any = Gone()


class Connection:
    """The transport of one link."""

    certificate: Any = None  # what a client has shown: rumq.net.certificate.PeerCertificate

    __slots__ = (
        "blocked", "bytes_in", "bytes_out", "closing", "dirty", "ended", "fd", "lingers", "link",
        "outbox_bytes_max", "peer", "pump", "queue", "reading", "reading_paused", "refused", "room", "sock", "unparsed",
        "write_failed",
    )  # fmt: skip

    def __init__(self, pump: Pump, sock: socket.socket, peer: str, outbox_bytes_max: int) -> None:
        self.pump = pump
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = peer
        self.link: Link
        self.unparsed: bytearray | None = None
        self.queue: list[tuple[Any, Any]] = []
        self.outbox_bytes_max = outbox_bytes_max
        self.room = outbox_bytes_max
        self.blocked = False  # the socket is full; an edge of writability will come
        self.write_failed = ""  # why sending failed; what the client sent before is still read
        self.refused = False  # somebody found no room and waits for it
        self.dirty = False
        self.ended = False  # nothing more is coming but what its socket holds
        self.closing = False
        self.reading = True
        self.reading_paused = False  # by its handler
        self.lingers = False  # at its end something was said that its client is to read
        self.bytes_in = 0
        self.bytes_out = 0

    def write(self, data: Any, owner: Any = None) -> None:
        """Queue bytes; they leave at the end of the turn. owner: whose they are, if they can be read again."""
        self.queue.append((data, owner))
        self.room -= len(data)
        if not self.dirty:
            self.dirty = True
            self.pump.dirty.append(self)

    def waits(self) -> bool:
        """Whether something is on its way out."""
        return bool(self.queue)

    def close(self) -> None:
        """Send what waits as far as the socket takes it, then end the connection."""
        self.closing = True
        if not self.dirty:
            self.dirty = True
            self.pump.dirty.append(self)

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        self.reading_paused = True

    def resume_reading(self) -> None:
        """Take what was read and not taken, and read on."""
        if self.reading_paused and not self.closing:
            self.reading_paused = False
            self.pump.take_up(self)

    def facts(self) -> bytes:
        """What another shard must be told with `give_away`, beside the peer; nothing for a plain connection."""
        return b""

    def give_away(self) -> int:
        """Let the socket go to another process: its descriptor, which is the caller's now."""
        self.pump.forget(self)
        sock = self.sock
        self.parted()
        return sock.detach()

    def parted(self) -> None:
        """The pump serves it no more: let go of what leads back here."""
        self.link = GONE

    def flush(self) -> None:
        """Send what waits; called at the end of a turn, and when a full socket has room again."""
        self.dirty = False
        queue = self.queue
        if self.closing and queue:
            self.lingers = True
        if queue and not self.blocked:
            try:
                if len(queue) == 1:
                    waiting = len(queue[0][0])
                    sent = self.sock.send(queue[0][0])
                elif len(queue) <= IOV_MAX:
                    buffers = [data for data, _ in queue]
                    waiting = sum(map(len, buffers))
                    sent = self.sock.sendmsg(buffers)
                else:
                    joined = b"".join([data for data, _ in queue])
                    waiting = len(joined)
                    sent = self.sock.send(joined)
            except BlockingIOError:
                sent = 0
            except OSError as fault:
                self.pump.stop_writing(self, fault.strerror or "connection lost")
                sent = -1
            if sent >= 0:
                self.bytes_out += sent
                if sent == waiting:
                    queue.clear()
                    self.room = self.outbox_bytes_max
                    if self.refused:
                        self.pump.drained(self)
                else:
                    self.blocked = True
                    self._keep_unsent(sent)
        if self.closing:
            self.pump.drop(self, lingers=self.lingers and not self.write_failed)

    def _keep_unsent(self, sent: int) -> None:
        """Keep the rest of what the socket did not take; of bytes that can be read again, only to a frame's end."""
        kept: list[tuple[Any, Any]] = []
        size = 0
        for data, owner in self.queue:
            length = len(data)
            if sent >= length:
                sent -= length
                continue
            end = length if owner is None else owner[0].cut_at(owner, sent)
            if end > sent:
                rest = bytes(memoryview(data)[sent:end]) if owner is not None else memoryview(data)[sent:]
                kept.append((rest, None))
                size += len(rest)
            sent = 0
        self.queue[:] = kept
        self.room = self.outbox_bytes_max - size

    def writable(self) -> None:
        """The socket has room again."""
        self.blocked = False
        self.flush()
        if not self.blocked and not self.closing:
            self.pump.drained(self)
