"""A layer that changes packets on their way in and out, a frame at a time: a listener with a mount point.

It costs its clients a copy of everything and a decision per packet; other listeners nothing. What is done to a frame is
given."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Protocol, cast

from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.mount import OutsideTheMount
from rumq.net.certificate import PeerCertificate
from rumq.net.stream import ReadBuffer, StreamLayer, WriteBuffer
from rumq.net.transport.stream_connection import StreamConnection
from rumq.session.ports.transport import ClientHandler

# Empty between two calls: an idle connection owns no buffer.
WIRE = bytearray(1 << 16)


class FrameRewriter(Protocol):
    """Changes frames; `rumq.mqtt.mount.Mount` is one. version: as CONNECT says, 0 before it"""

    version: int

    def inward(self, first_byte: int, body: bytes) -> bytes:
        """raises: MqttFault"""

    def outward(self, first_byte: int, body: bytes) -> bytes:
        """raises: OutsideTheMount"""


class MountStream:
    """The uppermost stream of one connection."""

    can_move = False  # a frame may be here in part

    __slots__ = ("_bounds", "_fault", "_in", "_out", "_owner", "_ready", "_rewriter", "below", "is_open")

    def __init__(
        self,
        rewriter: FrameRewriter,
        below: StreamLayer,
        owner: StreamConnection,
        frame_bytes_max: int,
        first_bytes_max: int = 0,
    ) -> None:
        """frame_bytes_max: of a frame; first_bytes_max: until the client has logged in; 0: the same"""
        self._bounds = frame_bytes_max, min(frame_bytes_max, first_bytes_max or frame_bytes_max)
        self.below = below
        self.is_open = False
        self._rewriter, self._owner = rewriter, owner
        self._in = FrameReader(packet_bytes_max=frame_bytes_max)
        self._out = FrameReader()
        self._ready = bytearray()  # rewritten bytes that were not read yet
        self._fault: MqttFault | None = None  # the fault of what came behind `_ready`

    def fileno(self) -> int:
        return self.below.fileno()

    def recv_into(self, view: WriteBuffer) -> int:
        owner = self._owner
        if not self._ready:
            if self._fault is not None:
                self._refuse(self._fault)
            self._rewrite()
        n = min(len(self._ready), len(view))
        view[:n] = self._ready[:n]
        del self._ready[:n]
        if self._ready or self._fault is not None:
            owner.pump.read_next_turn(owner)
        return n

    def _rewrite(self) -> None:
        """Read from the client and rewrite whole frames. raises: BlockingIOError if nothing is ready then, OSError"""
        owner = self._owner
        with memoryview(WIRE) as wire:
            n = self.below.recv_into(wire)
        if not n:
            return
        if not self.is_open and self.below.is_open:
            self.is_open = True
            if owner.handshake is not None:
                owner.handshake.progress()
            owner.opened(self)
        if n == len(WIRE) or owner.ended:
            owner.pump.read_next_turn(owner)
        pending_logins = owner.pump.pending_logins
        is_new = owner in pending_logins
        self._in.packet_bytes_max = self._bounds[is_new]
        try:
            self._in.receive(memoryview(WIRE)[:n])
            for each in self._in.frames():
                self._ready += self._rewriter.inward(each.first_byte, each.body)
        except MqttFault as fault:
            if not self._ready:
                self._refuse(fault)
            self._fault = fault
        if is_new and not pending_logins.keep_bytes(owner, self._in.buffered_bytes):
            raise OSError(errno.ENOBUFS, "too much is kept of clients that have not logged in")
        if not self._ready:
            raise BlockingIOError

    def _refuse(self, fault: MqttFault) -> None:
        """End the connection, once all frames before the fault are handled. raises: BlockingIOError"""
        cast(ClientHandler, self._owner.link).refuse(fault, self._rewriter.version)
        raise BlockingIOError

    def put(self, buffers: Sequence[ReadBuffer], size: int) -> None:
        for data in buffers:
            self._out.receive(data)
        try:
            changed = [self._rewriter.outward(each.first_byte, each.body) for each in self._out.frames()]
        except OutsideTheMount as fault:
            raise OSError(errno.EPERM, str(fault)) from None
        if changed:
            self.below.put(changed, sum(map(len, changed)))

    def push(self) -> bool:
        return self.below.push()

    def pending(self) -> bool:
        return self.below.pending()

    def shutdown(self, how: int) -> None:
        self.below.shutdown(how)

    def recv(self, size: int) -> bytes:
        return self.below.recv(size)

    def close(self) -> None:
        self.below.close()

    def detach(self) -> int:
        return self.below.detach()

    def certificate(self) -> PeerCertificate | None:
        return self.below.certificate()

    def handover_state(self, certificate: PeerCertificate | None) -> bytes:
        return self.below.handover_state(certificate)
