"""Clients whose packets are changed on their way in and out, whole frames at a time: a listener with a mount point.

It costs such clients a copy of everything and a look at each packet, and the others nothing. Knows no packet: what is
done to a frame is given."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Protocol

from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader
from rumq.net.layered import Layered, Stream

if TYPE_CHECKING:
    from rumq.net.certificate import PeerCertificate


class Changes(Protocol):
    """What is done to frames; `rumq.mqtt.mount` is one."""

    def inward(self, first_byte: int, body: bytes) -> bytes: ...

    def outward(self, first_byte: int, body: bytes) -> bytes: ...


class MountedStream:
    """The uppermost stream of one connection."""

    can_move = False  # a frame may be here in part

    __slots__ = ("_changes", "_in", "_out", "_owner", "_ready", "_wire", "below", "is_open")

    def __init__(self, changes: Changes, below: Stream, owner: Layered, frame_bytes_max: int) -> None:
        self.below = below
        self.is_open = False
        self._changes, self._owner = changes, owner
        self._in = FrameReader(packet_bytes_max=frame_bytes_max)
        self._out = FrameReader()
        self._wire = bytearray(1 << 16)
        self._ready = bytearray()  # changed, and not taken yet

    def fileno(self) -> int:
        return self.below.fileno()

    def recv_into(self, view: Any) -> int:
        owner = self._owner
        if not self._ready:
            with memoryview(self._wire) as wire:
                n = self.below.recv_into(wire)
            if not n:
                return 0
            if not self.is_open and self.below.is_open:
                self.is_open = True
                owner.link.heard = True  # type: ignore[attr-defined]
                owner.opened(self)
            if n == len(self._wire) or owner.ended:
                owner.pump.again(owner)
            try:
                self._in.receive(self._wire[:n])
                for each in self._in.frames():
                    self._ready += self._changes.inward(each.first_byte, each.body)
            except MqttFault as fault:
                raise OSError(errno.EPROTO, fault.message) from None
            if not self._ready:
                raise BlockingIOError
        n = min(len(self._ready), len(view))
        view[:n] = self._ready[:n]
        del self._ready[:n]
        if self._ready:
            owner.pump.again(owner)
        return n

    def put(self, buffers: list[Any], size: int) -> None:
        for data in buffers:
            self._out.receive(data)
        changed = [self._changes.outward(each.first_byte, each.body) for each in self._out.frames()]
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

    def facts(self, certificate: PeerCertificate | None) -> bytes:
        return self.below.facts(certificate)
