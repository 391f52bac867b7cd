"""Kernel: walk what a broker sent, check every message and write the replies. MQTT 3.1.1, 3.3 to 3.7 and 4.3.

Each PUBLISH is checked for its publisher, its place in that publisher's sequence, its topic and its filler
(`offer.py` draws the payload). Acknowledgements are counted, and answered as their QoS asks.

Knows no socket, no clock, no window: bytes and the time they arrived at come in, counts and replies go out.
"""

import sys

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp, memcpy

IDS = cython.declare(cython.ulonglong, 65535)
# A sequence number this far ahead is a broken one: no broker loses four thousand million messages in a row.
LEAP = cython.declare(cython.ulonglong, 2**32)


@cython.final
@cython.cclass
class Check:
    """What one connection has received since `begin`."""

    received = cython.declare(cython.ulonglong, visibility="readonly")
    skipped = cython.declare(cython.ulonglong, visibility="readonly")
    late = cython.declare(cython.ulonglong, visibility="readonly")
    corrupt = cython.declare(cython.ulonglong, visibility="readonly")
    stray = cython.declare(cython.ulonglong, visibility="readonly")
    redelivered = cython.declare(cython.ulonglong, visibility="readonly")
    completed = cython.declare(cython.ulonglong, visibility="readonly")
    disordered = cython.declare(cython.ulonglong, visibility="readonly")
    others = cython.declare(cython.ulonglong, visibility="readonly")
    out_end = cython.declare(cython.Py_ssize_t, visibility="readonly")
    samples = cython.declare(cython.Py_ssize_t, visibility="readonly")

    next_sequence: cython.ulonglong[::1]
    publishers = cython.declare(cython.uint)
    first = cython.declare(cython.uint)
    first_topic = cython.declare(cython.uint)
    names: cython.const[cython.uchar][::1]
    name_bytes = cython.declare(cython.Py_ssize_t)
    topics = cython.declare(cython.ulonglong)
    filler: cython.const[cython.uchar][::1]
    latencies: cython.ulonglong[::1]

    def __init__(
        self,
        next_sequence: object,
        names: bytes,
        name_bytes: int,
        topics: int,
        filler: bytes,
        latencies: object,
    ) -> None:
        """next_sequence: array("Q"), one item for each publisher this connection gets messages of
        names: those publishers' topics one after the other, `topics` each, `name_bytes` each
        latencies: array("Q") that takes the first samples in ns, as long as there is room; may be empty
        """
        self.next_sequence = next_sequence
        self.publishers = len(next_sequence)
        if topics < 1 or name_bytes < 1 or len(names) != self.publishers * topics * name_bytes:
            raise ValueError(f"names: expected {self.publishers} * {topics} topics of {name_bytes} bytes")
        if not filler:
            raise ValueError("filler: expected a byte or more")
        self.names = names
        self.name_bytes = name_bytes
        self.topics = topics
        self.filler = filler
        self.latencies = latencies
        self.begin(0)

    def begin(self, first: cython.uint) -> None:
        """Expect publishers `first`, `first + 1`, ... from their message 0 on; forget all counts."""
        i: cython.Py_ssize_t
        self.first = first
        for i in range(self.publishers):
            self.next_sequence[i] = 0
        self.received = self.skipped = self.late = self.corrupt = self.stray = self.redelivered = 0
        self.completed = self.disordered = self.others = 0
        self.out_end = self.samples = 0

    @property
    def position(self) -> int:
        """How far the sequences have come here, what was skipped included: the sum over publishers."""
        return self.received - self.late + self.skipped

    def take(
        self,
        data: cython.const[cython.uchar][::1],
        end: cython.Py_ssize_t,
        out: cython.uchar[::1],
        out_end: cython.Py_ssize_t,
        now_ns: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        """Check the whole packets in `data[:end]`; return where the unfinished last one begins.

        Replies go to `out[out_end:]`; `self.out_end` says where they end. Stops early where `out` has no
        room for one more reply. now_ns: when the bytes arrived, 0 where latency is not wanted.
        raises: ValueError at a packet length no MQTT packet can have
        """
        at: cython.Py_ssize_t = 0
        body: cython.Py_ssize_t
        size: cython.Py_ssize_t
        first: cython.uint
        kind: cython.uint
        if end > len(data) or out_end < 0:
            raise IndexError(end)
        while at + 2 <= end and out_end + 4 <= len(out):
            first = data[at]
            size = data[at + 1]
            body = at + 2
            if size >= 128:
                size = self.long_size(data, at + 1, end)
                if size < 0:
                    break
                body = at + (3 if size < 16384 else 4 if size < 2097152 else 5)
            if body + size > end:
                break
            kind = first >> 4
            if kind == 3:
                out_end = self.take_publish(data, first, body, body + size, out, out_end, now_ns)
            elif 4 <= kind <= 7 and size >= 2:
                out_end = self.take_reply(kind, data[body], data[body + 1], out, out_end)
            else:
                self.others += 1
            at = body + size
        self.out_end = out_end
        return at

    @cython.cfunc
    @cython.inline
    def long_size(
        self, data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The remaining length at `data[at]` (MQTT 3.1.1, 2.2.3); -1 while it is not whole."""
        size: cython.Py_ssize_t = 0
        shift: cython.Py_ssize_t = 0
        byte: cython.uint
        while at < end:
            byte = data[at]
            size |= cython.cast(cython.Py_ssize_t, byte & 127) << shift
            if byte < 128:
                return size
            shift += 7
            at += 1
            if shift > 21:
                raise ValueError("a remaining length of more than four bytes")
        return -1

    @cython.cfunc
    @cython.inline
    def take_publish(
        self,
        data: cython.const[cython.uchar][::1],
        first: cython.uint,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        out: cython.uchar[::1],
        out_end: cython.Py_ssize_t,
        now_ns: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        qos: cython.uint = (first >> 1) & 3
        name: cython.Py_ssize_t = at + 2
        payload: cython.Py_ssize_t = name + self.name_bytes
        publisher: cython.uint = 0
        sequence: cython.ulonglong = 0
        sent_ns: cython.ulonglong = 0
        expected: cython.ulonglong
        topic: cython.Py_ssize_t
        same: cython.bint
        if qos:
            payload += 2
        if end - payload != 20 + len(self.filler):
            self.corrupt += 1
            return out_end
        if qos:
            # Even a message with a broken payload is answered: else the broker's window would close for good.
            out[out_end] = 0x40 if qos == 1 else 0x50
            out[out_end + 1] = 2
            out[out_end + 2] = data[payload - 2]
            out[out_end + 3] = data[payload - 1]
            out_end += 4
            if first & 8:
                self.redelivered += 1
        if cython.compiled:
            memcpy(cython.address(publisher), cython.address(data[payload]), 4)
            memcpy(cython.address(sequence), cython.address(data[payload + 4]), 8)
            memcpy(cython.address(sent_ns), cython.address(data[payload + 12]), 8)
        else:
            publisher = int.from_bytes(data[payload : payload + 4], sys.byteorder)
            sequence = int.from_bytes(data[payload + 4 : payload + 12], sys.byteorder)
            sent_ns = int.from_bytes(data[payload + 12 : payload + 20], sys.byteorder)
        if publisher < self.first or publisher - self.first >= self.publishers:
            self.stray += 1
            return out_end
        publisher -= self.first
        topic = publisher
        if self.topics > 1:
            topic = publisher * self.topics + sequence % self.topics
        topic *= self.name_bytes
        if cython.compiled:
            same = (
                memcmp(cython.address(data[name]), cython.address(self.names[topic]), self.name_bytes) == 0
                and memcmp(cython.address(data[payload + 20]), cython.address(self.filler[0]), len(self.filler)) == 0
            )
        else:
            same = (
                data[name : name + self.name_bytes] == self.names[topic : topic + self.name_bytes]
                and data[payload + 20 : end] == self.filler
            )
        expected = self.next_sequence[publisher]
        if not same or data[at] << 8 | data[at + 1] != self.name_bytes or sequence > expected + LEAP:
            self.corrupt += 1
            return out_end
        self.received += 1
        if sequence == expected:
            self.next_sequence[publisher] = sequence + 1
        elif sequence > expected:
            self.skipped += sequence - expected
            self.next_sequence[publisher] = sequence + 1
        else:
            self.late += 1
        if sent_ns and now_ns and self.samples < len(self.latencies):
            self.latencies[self.samples] = now_ns - sent_ns if now_ns > sent_ns else 0
            self.samples += 1
        return out_end

    @cython.cfunc
    @cython.inline
    def take_reply(
        self,
        kind: cython.uint,
        high: cython.uint,
        low: cython.uint,
        out: cython.uchar[::1],
        out_end: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """PUBACK and PUBCOMP end a message of ours; PUBREC and PUBREL ask for the next step."""
        if kind == 4 or kind == 7:
            if (high << 8 | low) != self.completed % IDS + 1:
                self.disordered += 1
            self.completed += 1
            return out_end
        out[out_end] = 0x62 if kind == 5 else 0x70
        out[out_end + 1] = 2
        out[out_end + 2] = high
        out[out_end + 3] = low
        return out_end + 4
