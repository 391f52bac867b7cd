"""Kernel: an open loop. Each message of each publisher is sent when it is due, whatever the broker does.

The payload carries the time the message was *due* at, not the time it was sent: what a slow broker or a full socket
holds up is part of its latency (no coordinated omission; Gil Tene, wrk2). QoS 0 or 1; at QoS 1 message `s` carries
packet id `s mod 65535 + 1`.

Knows sockets by their descriptors alone; connects, receives and reports nothing.
"""

import os
import sys
import time

import cython

if cython.compiled:
    from cython.cimports.libc.errno import EAGAIN, EINTR, errno
    from cython.cimports.libc.string import memcpy
    from cython.cimports.posix.time import CLOCK_MONOTONIC, clock_gettime, nanosleep, timespec
    from cython.cimports.posix.unistd import write

IDS = cython.declare(cython.ulonglong, 65535)
# While a socket is full, and as the longest nap, so that the end of the round's time is seen.
RETRY_NS = cython.declare(cython.longlong, 200_000)
NAP_NS_MAX = cython.declare(cython.longlong, 50_000_000)


@cython.final
@cython.cclass
class Schedule:
    """When message `k` of all is due: publisher `k mod publishers`, its message `k div publishers`. Times in ns from 0.

    in_phase: all publishers at the beginning of each period; else evenly spread over it, in their order
    """

    publishers = cython.declare(cython.longlong, visibility="readonly")
    period_ns = cython.declare(cython.longlong, visibility="readonly")
    in_phase = cython.declare(cython.bint, visibility="readonly")

    def __init__(self, publishers: int, period_ns: int, in_phase: bool) -> None:
        if publishers < 1 or period_ns < publishers:
            raise ValueError("a publisher or more, and a period of a ns or more for each")
        self.publishers, self.period_ns, self.in_phase = publishers, period_ns, in_phase

    @cython.ccall
    def due_ns(self, k: cython.longlong) -> cython.longlong:
        """When message `k` of all is due."""
        begins: cython.longlong = k // self.publishers * self.period_ns
        if self.in_phase:
            return begins
        return begins + k % self.publishers * self.period_ns // self.publishers

    @cython.ccall
    def due_count(self, passed_ns: cython.longlong) -> cython.longlong:
        """How many messages are due once `passed_ns` have passed: the first k of which `due_ns` is later."""
        if passed_ns < 0:
            return 0
        whole: cython.longlong = passed_ns // self.period_ns * self.publishers
        if self.in_phase:
            return whole + self.publishers
        into_ns: cython.longlong = passed_ns % self.period_ns
        return whole + ((into_ns + 1) * self.publishers - 1) // self.period_ns + 1


@cython.final
@cython.cclass
class Pacer:
    """The sockets of one worker's publishers, and what each has sent."""

    # Messages handed to the kernel whole; bytes of the next one that are.
    sent: cython.longlong[::1]
    begun: cython.longlong[::1]
    late = cython.declare(cython.Py_ssize_t, visibility="readonly")
    schedule: Schedule
    descriptors: cython.int[::1]
    frames: cython.const[cython.uchar][::1]
    frame_bytes = cython.declare(cython.Py_ssize_t)
    payload_at = cython.declare(cython.Py_ssize_t)
    packet_id_at = cython.declare(cython.Py_ssize_t)
    out: cython.uchar[::1]
    full: cython.uchar[::1]
    full_count = cython.declare(cython.Py_ssize_t)
    late_ns: cython.ulonglong[::1]
    first_stamp = cython.declare(cython.uint)
    start_ns = cython.declare(cython.longlong)

    def __init__(
        self, schedule: Schedule, descriptors: object, frames: bytes, payload_bytes: int, sent: object,
        late_ns: object, with_packet_id: bool = False,
    ) -> None:  # fmt: skip
        """descriptors: array("i"), non-blocking sockets, one for each publisher
        frames: one whole frame for each, all of one size, payload last, before it the packet id if there is one
        sent: array("q"), one for each; late_ns: array("Q") that takes by how much the first messages were late
        """
        if len(descriptors) != schedule.publishers or len(sent) != schedule.publishers:
            raise ValueError("descriptors, sent: one for each publisher")
        self.frame_bytes = len(frames) // len(descriptors)
        if self.frame_bytes * len(descriptors) != len(frames) or not 20 <= payload_bytes <= self.frame_bytes:
            raise ValueError("frames: one for each publisher, all of one size, with 20 bytes of payload or more")
        self.schedule, self.descriptors, self.frames = schedule, descriptors, frames
        self.payload_at = self.frame_bytes - payload_bytes
        self.packet_id_at = self.payload_at - 2 if with_packet_id else 0
        self.sent, self.late_ns = sent, late_ns
        self.begun = memoryview(bytearray(8 * len(descriptors))).cast("q")
        self.out, self.full = bytearray(self.frame_bytes), bytearray(len(descriptors))
        self.full_count = self.late = 0

    def run(
        self,
        first_stamp: cython.uint,
        messages: cython.longlong,
        start_ns: cython.longlong,
        stop_ns: cython.longlong,
    ) -> None:
        """Send `messages` of each publisher from `start_ns` on, CLOCK_MONOTONIC; return at `stop_ns` in any case.

        first_stamp: the number that publisher 0 writes into its payloads; the next one writes the next number
        raises: OSError where a connection is lost
        """
        p: cython.Py_ssize_t
        k: cython.longlong = 0
        due: cython.longlong
        now_ns: cython.longlong
        n: cython.longlong = self.schedule.publishers
        total: cython.longlong = messages * n
        self.first_stamp, self.start_ns = first_stamp, start_ns
        self.full_count = self.late = 0
        for p in range(n):
            self.sent[p] = self.begun[p] = self.full[p] = 0
        while k < total or self.full_count:
            now_ns = monotonic_ns()
            if now_ns >= stop_ns:
                return
            due = min(total, self.schedule.due_count(now_ns - start_ns))
            if self.full_count:
                for p in range(n):
                    if self.full[p]:
                        self.send(p, k // n + (1 if p < k % n else 0))
            while k < due:
                p = k % n
                self.send(p, k // n + 1)
                k += 1
            if k < total or self.full_count:
                self.wait(k, total, stop_ns)

    @cython.cfunc
    def wait(self, k: cython.longlong, total: cython.longlong, stop_ns: cython.longlong) -> cython.void:
        """Sleep until message `k` is due, not longer than to the end, a short while where a socket is full."""
        until_ns: cython.longlong = self.start_ns + self.schedule.due_ns(k) if k < total else stop_ns
        nap_ns: cython.longlong = min(until_ns, stop_ns) - monotonic_ns()
        nap_ns = min(nap_ns, RETRY_NS if self.full_count else NAP_NS_MAX)
        if nap_ns > 0:
            sleep_ns(nap_ns)

    @cython.cfunc
    def send(self, p: cython.Py_ssize_t, wanted: cython.longlong) -> cython.bint:
        """Bring publisher `p` to `wanted` messages, or as far as its socket takes them; whether it took all."""
        due_ns: cython.ulonglong
        now_ns: cython.ulonglong
        went: cython.Py_ssize_t
        while self.sent[p] < wanted:
            due_ns = self.start_ns + self.schedule.due_ns(self.sent[p] * self.schedule.publishers + p)
            self.draw(p, due_ns)
            now_ns = monotonic_ns()
            went = send_some(self.descriptors[p], self.out, self.begun[p])
            if went < 0:
                if not self.full[p]:
                    self.full[p] = 1
                    self.full_count += 1
                return False
            self.begun[p] += went
            if self.begun[p] < self.frame_bytes:
                continue
            self.begun[p] = 0
            self.sent[p] += 1
            if self.late < len(self.late_ns):
                self.late_ns[self.late] = now_ns - due_ns if now_ns > due_ns else 0
                self.late += 1
        if self.full[p]:
            self.full[p] = 0
            self.full_count -= 1
        return True

    @cython.cfunc
    def draw(self, p: cython.Py_ssize_t, due_ns: cython.ulonglong) -> cython.void:
        """The next frame of publisher `p` into `out`; drawn anew each time, so that none has to be kept."""
        at: cython.Py_ssize_t = p * self.frame_bytes
        payload: cython.Py_ssize_t = self.payload_at
        stamp: cython.uint = self.first_stamp + cython.cast(cython.uint, p)
        sequence: cython.ulonglong = self.sent[p]
        packet_id: cython.uint
        if cython.compiled:
            memcpy(cython.address(self.out[0]), cython.address(self.frames[at]), self.frame_bytes)
            memcpy(cython.address(self.out[payload]), cython.address(stamp), 4)
            memcpy(cython.address(self.out[payload + 4]), cython.address(sequence), 8)
            memcpy(cython.address(self.out[payload + 12]), cython.address(due_ns), 8)
        else:
            self.out[:] = self.frames[at : at + self.frame_bytes]
            self.out[payload : payload + 4] = stamp.to_bytes(4, sys.byteorder)
            self.out[payload + 4 : payload + 12] = sequence.to_bytes(8, sys.byteorder)
            self.out[payload + 12 : payload + 20] = due_ns.to_bytes(8, sys.byteorder)
        if self.packet_id_at:
            packet_id = cython.cast(cython.uint, sequence % IDS) + 1
            self.out[self.packet_id_at] = packet_id >> 8
            self.out[self.packet_id_at + 1] = packet_id & 255


@cython.cfunc
def send_some(descriptor: cython.int, out: cython.uchar[::1], begun: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes of `out[begun:]` that the socket took; -1: it is full. raises: OSError"""
    went: cython.Py_ssize_t
    if cython.compiled:
        while True:
            went = write(descriptor, cython.address(out[begun]), len(out) - begun)
            if went >= 0:
                return went
            if errno == EAGAIN:
                return -1
            if errno != EINTR:
                raise OSError(errno, "a publisher's connection: " + os.strerror(errno))
    try:
        return os.write(descriptor, memoryview(out)[begun:])
    except BlockingIOError:
        return -1


@cython.cfunc
def monotonic_ns() -> cython.longlong:
    if cython.compiled:
        now = cython.declare(timespec)
        clock_gettime(CLOCK_MONOTONIC, cython.address(now))
        return cython.cast(cython.longlong, now.tv_sec) * 1_000_000_000 + now.tv_nsec
    return time.monotonic_ns()


@cython.cfunc
def sleep_ns(nap_ns: cython.longlong) -> cython.void:
    if cython.compiled:
        nap = cython.declare(timespec)
        nap.tv_sec = nap_ns // 1_000_000_000
        nap.tv_nsec = nap_ns % 1_000_000_000
        with cython.nogil:
            nanosleep(cython.address(nap), cython.NULL)
    else:
        time.sleep(nap_ns / 1e9)
