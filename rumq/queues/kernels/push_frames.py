"""Kernel: messages to push as PUBLISH packets of QoS 1, many at once, and the PUBACKs that answer them. MQTT 5.0, 3.3.

Packet ids are put in when packets are sent, so packets are made once, whenever there is room for them. What may be
wrong with a message is not told here: `take` stops there, and leaves it to who can say why."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.libc.string import memcpy

IDS = cython.declare(cython.uint, 65_535)
KEY_BYTES_MAX = cython.declare(cython.Py_ssize_t, 1024)
TEXT_BYTES_MAX = cython.declare(cython.Py_ssize_t, 65_535)
FRAME_BYTES = cython.declare(cython.Py_ssize_t, 192)  # of a packet beside what is counted, at most
KEY = b"\x26\x00\x08rumq-key"
EXPIRY_MAX = cython.declare(cython.longlong, 0xFFFFFFFF)


@cython.cfunc
def append_word(out: bytearray, value: cython.uint) -> cython.void:
    """Four bytes, in the machine's order."""
    if cython.compiled:
        at: cython.Py_ssize_t = PyByteArray_GET_SIZE(out)
        PyByteArray_Resize(out, at + 4)
        memcpy(PyByteArray_AS_STRING(out) + at, cython.address(value), 4)
    else:
        out += value.to_bytes(4, "little")


@cython.cfunc
def varint(value: cython.Py_ssize_t) -> bytes:
    if value < 128:
        return bytes((value,))
    if value < 16_384:
        return bytes((value & 127 | 128, value >> 7))
    if value < 2_097_152:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14 & 127 | 128, value >> 21))


@cython.cfunc
def text(word: object, bytes_max: cython.Py_ssize_t) -> object:
    """A string of MQTT with its length; None for what is none. MQTT 5.0, 1.5.4"""
    try:
        data = str.encode(word)
    except UnicodeEncodeError:
        return None
    if len(data) > bytes_max or b"\0" in data:
        return None
    return len(data).to_bytes(2, "big") + data


@cython.cclass
class PushFrames:
    """PUBLISH packets, one behind the other. Its fields are typed in push_frames.pxd.

    data: the packets, with 0 for their ids; starts, ids: where each begins and where its id is, 4 bytes each"""

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts = bytearray(4)
        self.ids = bytearray()
        self.count = 0
        self._expiry = -1
        self._expiry_properties = b""

    def __len__(self) -> int:
        return self.count

    def add(self, first_byte: cython.uint, topic: bytes, properties: bytes, payload: bytes) -> None:
        """topic: with its length; properties: encoded, with theirs"""
        self._put(first_byte, topic, properties, payload)

    @cython.cfunc
    def _put(self, first_byte: cython.uint, topic: bytes, properties: bytes, payload: bytes) -> cython.void:
        head: bytes = varint(len(topic) + 2 + len(properties) + len(payload))
        if cython.compiled:
            at: cython.Py_ssize_t = PyByteArray_GET_SIZE(self.data)
            size: cython.Py_ssize_t = 3 + len(head) + len(topic) + len(properties) + len(payload)
            PyByteArray_Resize(self.data, at + size)
            out: cython.p_char = PyByteArray_AS_STRING(self.data)
            out[at] = cython.cast(cython.char, first_byte)
            at += 1
            memcpy(out + at, PyBytes_AS_STRING(head), len(head))
            at += len(head)
            memcpy(out + at, PyBytes_AS_STRING(topic), len(topic))
            at += len(topic)
            append_word(self.ids, at)
            out[at] = out[at + 1] = 0
            at += 2
            memcpy(out + at, PyBytes_AS_STRING(properties), len(properties))
            at += len(properties)
            memcpy(out + at, PyBytes_AS_STRING(payload), len(payload))
            append_word(self.starts, at + len(payload))
        else:
            self.data += bytes((first_byte,)) + head + topic
            append_word(self.ids, len(self.data))
            self.data += b"\0\0" + properties + payload
            append_word(self.starts, len(self.data))
        self.count += 1

    @cython.cfunc
    def _properties(self, expiry: cython.longlong) -> bytes:
        """Of a message that has nothing else; messages of a batch often have equal ones."""
        if expiry != self._expiry:
            self._expiry = expiry
            self._expiry_properties = b"\x05\x02" + expiry.to_bytes(4, "big")
        return self._expiry_properties

    def take(
        self,
        messages: list,
        at: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        topics: dict,
        expiry_max: cython.longlong,
        packet_max: cython.Py_ssize_t,
    ) -> int:
        """Messages at..stop of `rumq.queues.Push`; returns the first that was not taken: one that waits, or is wrong,
        or of a topic not in `topics`.

        topics: the encoded topic of MQTT, with its length, by that of the message; expiry_max: seconds, at most
        packet_max: bytes of a packet, at most"""
        expiry: cython.longlong
        size: cython.Py_ssize_t
        while at < stop:
            push = messages[at]
            topic: object = topics.get(push.topic)
            payload: object = push.payload
            if topic is None or push.delay_seconds or type(payload) is not bytes:
                return at
            wanted: object = push.expiry_seconds
            if wanted is None:
                expiry = expiry_max
            elif type(wanted) is not int or wanted < 1 or wanted > EXPIRY_MAX:
                return at
            else:
                expiry = min(cython.cast(cython.longlong, wanted), expiry_max)
            key: object = push.key
            headers: object = push.headers
            content_type: object = push.content_type
            if headers:
                return at
            properties: object = self._properties(expiry)
            size = len(payload) + len(topic) + FRAME_BYTES
            if key is not None or content_type:
                own = properties[1:]
                if key is not None:
                    word = text(key, KEY_BYTES_MAX)
                    if word is None:
                        return at
                    own = own + KEY + word
                if content_type:
                    word = text(content_type, TEXT_BYTES_MAX)
                    if word is None:
                        return at
                    own = own + b"\x03" + word
                properties = varint(len(own)) + own
                size += len(own)
            if size > packet_max:
                return at
            self._put(0x32, topic, properties, payload)
            at += 1
        return at

    def stop_of(self, first: cython.Py_ssize_t, count_max: cython.Py_ssize_t, bytes_max: cython.Py_ssize_t) -> int:
        """One behind the frames from `first` on that are within the bounds; one always is."""
        starts: cython.const[cython.uint][::1] = memoryview(self.starts).cast("I")
        stop: cython.Py_ssize_t = first
        end: cython.Py_ssize_t = min(self.count, first + count_max)
        while stop < end and (stop == first or starts[stop + 1] - starts[first] <= bytes_max):
            stop += 1
        return stop

    def numbered(self, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, packet_id: cython.uint) -> bytearray:
        """Frames first..stop, with packet ids from this one on."""
        starts: cython.const[cython.uint][::1] = memoryview(self.starts).cast("I")
        ids: cython.const[cython.uint][::1] = memoryview(self.ids).cast("I")
        begin: cython.Py_ssize_t = starts[first]
        copied = self.data[begin : starts[stop]]
        out: cython.uchar[::1] = copied
        i: cython.Py_ssize_t
        for i in range(first, stop):
            out[ids[i] - begin] = packet_id >> 8
            out[ids[i] - begin + 1] = packet_id & 255
            packet_id = packet_id % IDS + 1
        return copied


def short_pubacks(data: object, at: cython.Py_ssize_t, packet_id: cython.uint, count_max: cython.Py_ssize_t) -> int:
    """How many PUBACKs without a reason are at `at`, with packet ids from this one on."""
    buf: cython.const[cython.uchar][::1] = memoryview(data)
    end: cython.Py_ssize_t = len(buf) - 4
    count: cython.Py_ssize_t = 0
    while (
        at <= end
        and count < count_max
        and buf[at] == 0x40
        and buf[at + 1] == 2
        and (buf[at + 2] << 8 | buf[at + 3]) == packet_id
    ):
        packet_id = packet_id % IDS + 1
        at += 4
        count += 1
    return count


def pubacks(packet_ids: list) -> bytes:
    """A PUBACK of each."""
    made = bytearray(4 * len(packet_ids))
    out: cython.uchar[::1] = made
    packet_id: cython.uint
    at: cython.Py_ssize_t = 0
    for each in packet_ids:
        packet_id = each
        out[at] = 0x40
        out[at + 1] = 2
        out[at + 2] = packet_id >> 8
        out[at + 3] = packet_id & 255
        at += 4
    out = None
    return bytes(made)
