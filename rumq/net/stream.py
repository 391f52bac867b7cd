"""The interface of a transport layer: plain bytes on one side, the wire's on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from rumq.net.certificate import PeerCertificate

ReadBuffer: TypeAlias = bytes | bytearray | memoryview
WriteBuffer: TypeAlias = bytearray | memoryview


class StreamLayer(Protocol):
    """One layer of a connection; the uppermost one has the place of the socket."""

    is_open: bool

    @property
    def can_move(self) -> bool:
        """Whether another process can continue it."""

    def fileno(self) -> int: ...

    def recv_into(self, view: WriteBuffer) -> int:
        """Plain bytes into `view`; 0 at the end. raises: BlockingIOError if there are none for now, OSError"""

    def put(self, buffers: Sequence[ReadBuffer], size: int) -> None:
        """Accept plain bytes, altogether `size`, for sending. raises: OSError"""

    def push(self) -> bool:
        """Send what was put; False while some of it waits for the socket. raises: OSError"""

    def pending(self) -> bool:
        """Whether some of it waits."""

    def shutdown(self, how: int) -> None: ...

    def recv(self, size: int) -> bytes:
        """Bytes of the wire, to be dropped."""

    def close(self) -> None: ...

    def detach(self) -> int: ...

    def certificate(self) -> PeerCertificate | None: ...

    def handover_state(self, certificate: PeerCertificate | None) -> bytes:
        """As of `rumq.net.connection_handover`."""
