"""Kernel: write one publisher's next PUBLISH packets into a send buffer. MQTT 3.1.1, 3.3.

A payload is: publisher u32, sequence u64, send time in ns u64, filler; numbers in this machine's byte order.
Message `s` of a publisher goes to its topic `s mod topics` and carries packet id `s mod 65535 + 1`.

Knows no socket, no clock, no window: how many to write, and the time, are arguments.
"""

import sys

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

IDS = cython.declare(cython.ulonglong, 65535)


@cython.final
@cython.cclass
class Offer:
    """The messages of one publisher, numbered from 0."""

    sequence = cython.declare(cython.ulonglong, visibility="readonly")
    frame_bytes = cython.declare(cython.Py_ssize_t, visibility="readonly")
    templates: cython.const[cython.uchar][::1]
    templates_bytes = cython.declare(cython.Py_ssize_t)
    template_at = cython.declare(cython.Py_ssize_t)
    payload_at = cython.declare(cython.Py_ssize_t)
    packet_id_at = cython.declare(cython.Py_ssize_t)

    def __init__(self, templates: bytes, frame_bytes: int, payload_bytes: int, with_packet_id: bool) -> None:
        """templates: one whole frame of `frame_bytes` for each topic, in the topics' order, payload last."""
        if frame_bytes <= 0 or len(templates) % frame_bytes or not 20 <= payload_bytes <= frame_bytes - 4:
            raise ValueError("templates are whole frames of one size, with 20 bytes of payload or more")
        self.templates = templates
        self.templates_bytes = len(templates)
        self.frame_bytes = frame_bytes
        self.payload_at = frame_bytes - payload_bytes
        self.packet_id_at = self.payload_at - 2 if with_packet_id else 0
        self.begin()

    def begin(self) -> None:
        """Number from 0 again."""
        self.sequence = 0
        self.template_at = 0

    def write(
        self,
        out: cython.uchar[::1],
        at: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        publisher: cython.uint,
        now_ns: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        """Write up to `count` frames from `out[at]` on, as many as fit; return where they end."""
        size: cython.Py_ssize_t = self.frame_bytes
        payload: cython.Py_ssize_t
        packet_id: cython.uint
        sequence: cython.ulonglong = self.sequence
        if at < 0:
            raise IndexError(at)
        while count > 0 and at + size <= len(out):
            payload = at + self.payload_at
            if cython.compiled:
                memcpy(cython.address(out[at]), cython.address(self.templates[self.template_at]), size)
                memcpy(cython.address(out[payload]), cython.address(publisher), 4)
                memcpy(cython.address(out[payload + 4]), cython.address(sequence), 8)
                memcpy(cython.address(out[payload + 12]), cython.address(now_ns), 8)
            else:
                out[at : at + size] = self.templates[self.template_at : self.template_at + size]
                out[payload : payload + 4] = publisher.to_bytes(4, sys.byteorder)
                out[payload + 4 : payload + 12] = sequence.to_bytes(8, sys.byteorder)
                out[payload + 12 : payload + 20] = now_ns.to_bytes(8, sys.byteorder)
            if self.packet_id_at:
                packet_id = cython.cast(cython.uint, sequence % IDS) + 1
                out[at + self.packet_id_at] = packet_id >> 8
                out[at + self.packet_id_at + 1] = packet_id & 255
            self.template_at += size
            if self.template_at == self.templates_bytes:
                self.template_at = 0
            sequence += 1
            at += size
            count -= 1
        self.sequence = sequence
        return at
