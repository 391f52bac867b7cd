"""A WebSocket by hand, as much as MQTT needs of it. RFC 6455; MQTT 5.0, chapter 6. Knows no MQTT packet."""

import base64
import contextlib
import hashlib
import os
import socket

Address = tuple[str, int]
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class WebSocket:
    def __init__(self, address: Address, protocols: str = "mqtt", path: str = "/mqtt") -> None:
        self.socket = socket.create_connection(address, timeout=30)
        key = base64.b64encode(os.urandom(16))
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {address[0]}:{address[1]}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key.decode()}",
            "Sec-WebSocket-Version: 13",
        ]
        lines += [f"Sec-WebSocket-Protocol: {protocols}"] if protocols else []
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._buffer = b""
        head = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.status = int(head[0].split()[1]) if head[0] else 0
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        expected = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        self.accepted = self.status == 101 and self.headers.get("sec-websocket-accept") == expected

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes, opcode: int = BINARY, final: bool = True) -> None:
        """One frame, masked as a client's must be."""
        size = len(data)
        head = bytes([final << 7 | opcode])
        head += bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
        mask = os.urandom(4)
        body = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        self.socket.sendall(head + mask + body)

    def frame(self) -> tuple[int, bytes]:
        """The next frame's (opcode, payload); CLOSE with no payload when the stream is over."""
        head = self._exactly(2)
        if len(head) < 2:
            return CLOSE, b""
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
        return head[0] & 15, self._exactly(size)

    def binary(self, size: int) -> bytes:
        """At least `size` bytes of binary frames, however they were cut; fewer at the end."""
        found = b""
        while len(found) < size:
            opcode, data = self.frame()
            if opcode == CLOSE:
                break
            assert opcode in (BINARY, CONTINUATION), f"opcode {opcode} from a broker"
            found += data
        return found

    def ended(self) -> bool:
        """Whether the broker closes, by a CLOSE frame or the connection's end; TimeoutError if not."""
        return self.frame()[0] == CLOSE

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer and (data := self._data()):
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(mark)
        return head

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size and (data := self._data()):
            self._buffer += data
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _data(self) -> bytes:
        with contextlib.suppress(ConnectionError):
            return self.socket.recv(65_536)
        return b""
