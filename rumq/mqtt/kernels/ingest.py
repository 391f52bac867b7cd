"""Kernel: cut a receive buffer into PUBLISH records and acknowledgements. MQTT 5.0 and 3.1.1, 3.3 to 3.7.

One call per `recv`. It walks whole packets: PUBLISH packets become rows and frames of a `Batch`
(docs/reference/log-format.md, "Row" and "Frame"); acknowledgements in their short forms change the connection's
`Window`; any other packet stops the walk and is left to the ordinary decoder. A fault is returned in `Wire`, as a
reason code. Every length from the network is checked before it is used."""

import cython

from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.publish_properties import Found
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.kernels.wire_state import FAULT as FAULT
from rumq.mqtt.kernels.wire_state import FULL as FULL
from rumq.mqtt.kernels.wire_state import MORE as MORE
from rumq.mqtt.kernels.wire_state import OTHER as OTHER
from rumq.mqtt.kernels.wire_state import PUBLISHER as PUBLISHER
from rumq.mqtt.kernels.wire_state import RETAIN as RETAIN
from rumq.mqtt.kernels.wire_state import TOPIC as TOPIC
from rumq.mqtt.kernels.wire_state import UNDECIDED as UNDECIDED
from rumq.mqtt.kernels.wire_state import Wire

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcmp, memcpy
    from cython.cimports.rumq.mqtt.kernels.batch import Batch
    from cython.cimports.rumq.mqtt.kernels.publish_properties import Found, said_qos_at, walk_properties
    from cython.cimports.rumq.mqtt.kernels.short_acks import put_ack, short_ack
    from cython.cimports.rumq.mqtt.kernels.topics import TopicTable
    from cython.cimports.rumq.mqtt.kernels.wire_state import Wire, acks_of
else:
    from rumq.mqtt.kernels.publish_properties import said_qos_at, walk_properties
    from rumq.mqtt.kernels.short_acks import put_ack, short_ack
    from rumq.mqtt.kernels.wire_state import acks_of

# Written out where it is used, the compiler takes it for a Python number.
LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
PARTITION = cython.declare(cython.ulonglong, 0xFFFFFF)
# In the number of a topic: nothing may be retained there by who uses this table.
NO_RETAIN_BIT = cython.declare(cython.longlong, 1 << 62)
NO_RETAIN = 1 << 62
RAISED_BYTES = cython.declare(cython.Py_ssize_t, 14)  # of `publish_properties`
# Row and chunk flags of docs/reference/log-format.md.
ROW_RETAIN = cython.declare(cython.uint, 4)
ROW_EXPIRY = cython.declare(cython.uint, 8)
ROW_V5 = cython.declare(cython.uint, 16)
ROW_PROPERTIES = cython.declare(cython.uint, 32)
ROW_EMPTY = cython.declare(cython.uint, 64)
CHUNK_QOS = cython.declare(cython.uint, 1)
CHUNK_V5 = cython.declare(cython.uint, 2)
CHUNK_EXPIRY = cython.declare(cython.uint, 4)
CHUNK_RETAIN = cython.declare(cython.uint, 8)
CHUNK_UNIFORM = cython.declare(cython.uint, 32)


@cython.cfunc
@cython.inline
def u16(data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t) -> cython.uint:
    return (cython.cast(cython.uint, data[at]) << 8) | data[at + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_u32(out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.void:
    out[at] = value & 255
    out[at + 1] = (value >> 8) & 255
    out[at + 2] = (value >> 16) & 255
    out[at + 3] = (value >> 24) & 255


@cython.cfunc
@cython.inline
def same(
    a: cython.pointer(cython.const[cython.uchar]), i: cython.Py_ssize_t,
    b: cython.pointer(cython.const[cython.uchar]), n: cython.Py_ssize_t,
) -> cython.bint:  # fmt: skip
    if cython.compiled:
        return n == 0 or memcmp(cython.address(a[i]), cython.address(b[0]), n) == 0
    return a[i : i + n] == b[:n]


@cython.cfunc
@cython.inline
def same_here(
    a: cython.pointer(cython.const[cython.uchar]),
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
) -> cython.bint:
    if cython.compiled:
        return n == 0 or memcmp(cython.address(a[i]), cython.address(a[j]), n) == 0
    return a[i : i + n] == a[j : j + n]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def copy(
    out: cython.p_uchar, at: cython.Py_ssize_t, data: cython.pointer(cython.const[cython.uchar]),
    start: cython.Py_ssize_t, n: cython.Py_ssize_t,
) -> cython.void:  # fmt: skip
    if n <= 0:
        return
    if cython.compiled:
        memcpy(cython.address(out[at]), cython.address(data[start]), n)
    else:
        out[at : at + n] = data[start : start + n]


@cython.cfunc
@cython.inline
def cut_bytes(data: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, n: cython.Py_ssize_t) -> bytes:
    if n == 0:
        return b""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(data[at])), n)
    return bytes(data[at : at + n])


def cut(wire: Wire, batches: list, data: object, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, topics: object) -> int:
    """Walk whole packets of `data[pos:end]`; returns the position of the first one not taken.

    wire:    the connection; its `stop` says why the walk ended, its `acks` grow
    batches: a Batch a partition, which grow
    topics:  topic as bytes -> partition << 32 | topic id, maybe | NO_RETAIN; a TopicTable, or a dictionary
    """
    table: TopicTable = topics if cython.compiled and isinstance(topics, TopicTable) else None
    buf: cython.pointer(cython.const[cython.uchar]) = data
    batch: Batch = None
    found: Found = None
    rows: cython.p_uchar = cython.NULL
    frames: cython.p_uchar = cython.NULL
    last: cython.pointer(cython.const[cython.uchar]) = cython.NULL
    last_len: cython.Py_ssize_t = -1
    last_at: cython.Py_ssize_t = -1  # where the last topic stands in `buf`; -1: it is `last`
    fetched: cython.Py_ssize_t = 0  # what the table has of topics up to here is on its way to the cache
    value: cython.longlong = 0
    key: object
    known: object
    head: cython.uint
    qos: cython.uint
    row_flags: cython.uint
    chunk_flags: cython.uint
    form: cython.uint
    rem: cython.Py_ssize_t
    shift: cython.int
    byte: cython.uint
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    topic_at: cython.Py_ssize_t
    topic_len: cython.Py_ssize_t
    props_at: cython.Py_ssize_t = 0
    props_end: cython.Py_ssize_t = 0
    payload_at: cython.Py_ssize_t
    pid: cython.uint = 0
    said: cython.Py_ssize_t = -1  # where a message of QoS 2 says of which one it is
    run_at: cython.Py_ssize_t = -1  # start of bytes that are copied as they are, in one go
    out: cython.Py_ssize_t = 0
    row_at: cython.Py_ssize_t
    part: cython.Py_ssize_t = -1
    publisher: cython.uint = 0
    publisher_of: cython.Py_ssize_t = -1
    verbatim: cython.bint
    minimal: cython.bint
    code: cython.int
    i: cython.Py_ssize_t
    body: cython.Py_ssize_t
    props_len: cython.Py_ssize_t
    frame_len: cython.Py_ssize_t

    wire.stop = MORE
    wire.frame_bytes = 0
    if wire.last_key is not None:
        last = wire.last_key
        last_len = len(last)
        value = wire.last_value
    while pos + 2 <= end:
        head = buf[pos]
        # Remaining length, MQTT 5.0, 1.5.5.
        at = pos + 1
        rem = 0
        shift = 0
        while True:
            if at >= end:
                rem = -1
                break
            byte = buf[at]
            at += 1
            rem |= cython.cast(cython.Py_ssize_t, byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 21:
                wire.refuse(0x81, "a remaining length has five bytes")
                break
        if wire.stop == FAULT:
            break
        if rem < 0:
            break
        stop = at + rem
        if stop - pos > wire.packet_bytes_max:
            wire.refuse(0x95, "a packet of %d bytes, the limit is %d" % (stop - pos, wire.packet_bytes_max))
            break
        if head >> 4 != 3:
            if 0x40 <= head < 0x80 and rem <= 3 and stop <= end and (rem == 2 or (wire.v5 and rem == 3)):
                code = short_ack(wire, head, buf, at, rem)
                if code == 0:
                    wire.others += 1
                    if run_at >= 0:  # the run ends here: an acknowledgement is no part of any frame
                        copy(frames, out, buf, run_at, pos - run_at)
                        out += pos - run_at
                        run_at = -1
                    pos = stop
                    continue
            if head == 0xC0 and stop == pos + 2:
                # PINGREQ. Behind the acknowledgements on their way, PINGRESP says: all before is done.
                acks_of(wire).extend(b"\xd0\x00")
                wire.others += 1
                wire.answers += 1
                if run_at >= 0:
                    copy(frames, out, buf, run_at, pos - run_at)
                    out += pos - run_at
                    run_at = -1
                pos = stop
                continue
            # What was walked so far is complete; the decoder takes it from here.
            wire.stop = OTHER
            wire.frame_bytes = stop - pos
            break
        if stop > end:
            wire.frame_bytes = stop - pos
            break
        qos = (head >> 1) & 3
        if qos == 3:
            wire.refuse(0x81, "a PUBLISH of QoS 3")
            break
        if qos == 0 and head & 8:
            wire.refuse(0x81, "a PUBLISH of QoS 0 with DUP set")
            break
        if qos > wire.qos_max:
            wire.refuse(0x9B, "a PUBLISH of QoS %d, the limit is %d" % (qos, wire.qos_max))
            break
        if head & 1 and not wire.retain_available:
            wire.refuse(0x9A, "a retained PUBLISH, and retained messages are switched off")
            break
        if at + 2 > stop:
            wire.refuse(0x81, "a PUBLISH ends inside its topic")
            break
        topic_len = u16(buf, at)
        topic_at = at + 2
        payload_at = topic_at + topic_len
        if payload_at > stop:
            wire.refuse(0x81, "a PUBLISH ends inside its topic")
            break
        if qos:
            if payload_at + 2 > stop:
                wire.refuse(0x81, "a PUBLISH ends inside its packet id")
                break
            pid = u16(buf, payload_at)
            payload_at += 2
            if pid == 0:
                wire.refuse(0x82, "a PUBLISH with packet id 0")
                break
        minimal = at - pos - 1 == varint_size(rem)
        verbatim = True
        row_flags = qos
        chunk_flags = 0
        if wire.v5:
            if not minimal:
                wire.refuse(0x81, "a remaining length in more bytes than it needs")
                break
            row_flags |= ROW_V5
            chunk_flags |= CHUNK_V5
            props_at = payload_at
            props_len = 0
            shift = 0
            while True:
                if props_at >= stop or shift > 21:
                    wire.refuse(0x81, "the property length of a PUBLISH is malformed")
                    break
                byte = buf[props_at]
                props_at += 1
                props_len |= cython.cast(cython.Py_ssize_t, byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            if wire.stop == FAULT:
                break
            if props_at - payload_at != varint_size(props_len):
                wire.refuse(0x81, "a property length in more bytes than it needs")
                break
            props_end = props_at + props_len
            if props_end > stop:
                wire.refuse(0x81, "a PUBLISH ends inside its properties")
                break
            payload_at = props_end
            if props_len:
                row_flags |= ROW_PROPERTIES
                if found is None:
                    found = Found()
                code = walk_properties(buf, props_at, props_end, found)
                if code:
                    wire.refuse(code, found.text)
                    break
                if found.expiry:
                    row_flags |= ROW_EXPIRY
                    chunk_flags |= CHUNK_EXPIRY
                if found.alias_at >= 0:
                    if found.alias == 0 or found.alias > wire.alias_max:
                        wire.refuse(0x94, "topic alias %d, the highest allowed is %d" % (found.alias, wire.alias_max))
                        break
                    verbatim = False
        key = None
        if topic_len == 0:
            if not wire.v5 or verbatim:
                wire.refuse(0x82, "a PUBLISH with an empty topic and no topic alias")
                break
            key = wire.aliases[found.alias] if wire.aliases is not None else None
            if key is None:
                wire.refuse(0x82, "topic alias %d stands for no topic yet" % found.alias)
                break
        # Which topic is it: the last one again, mostly.
        if key is not None:
            known = topics.get(key)
            if known is None:
                wire.topic = key
                wire.stop = TOPIC
                break
            value = known
            last_len = last_at = -1
            wire.last_key = None
        elif topic_len == last_len and (
            same_here(buf, topic_at, last_at, topic_len) if last_at >= 0 else same(buf, topic_at, last, topic_len)
        ):
            pass
        elif table is not None:
            if pos >= fetched:
                fetched = table.fetch(cython.address(buf[0]), pos, end)
            if not table.look_ahead(cython.address(buf[topic_at]), topic_len):
                wire.topic = cut_bytes(buf, topic_at, topic_len)
                wire.stop = TOPIC
                break
            value = table.found
            last_at = topic_at
            last_len = topic_len
        else:
            key = cut_bytes(buf, topic_at, topic_len)
            known = topics.get(key)
            if known is None:
                wire.topic = key
                wire.stop = TOPIC
                break
            value = known
            last = key
            last_len = topic_len
            wire.last_key = key
            wire.last_value = value
        if not verbatim and topic_len:
            if wire.aliases is None:
                wire.aliases = [None] * (wire.alias_max + 1)
            wire.aliases[found.alias] = cut_bytes(buf, topic_at, topic_len)
        if head & 1 and value & NO_RETAIN_BIT:
            wire.topic = cut_bytes(buf, topic_at, topic_len) if topic_len else key
            wire.stop = RETAIN
            wire.frame_bytes = stop - pos
            break
        if value < 0:
            # The publisher may not write there: acknowledged where the packet asks for it, stored nowhere.
            if run_at >= 0:
                copy(frames, out, buf, run_at, pos - run_at)
                out += pos - run_at
                run_at = -1
            wire.topic = cut_bytes(buf, topic_at, topic_len) if topic_len else key
            wire.stop = OTHER
            wire.frame_bytes = stop - pos
            break
        if ((value >> 32) & PARTITION) != part:
            if batch is not None:
                if run_at >= 0:
                    copy(frames, out, buf, run_at, pos - run_at)
                    out += pos - run_at
                    run_at = -1
                batch.frames_len = out
            part = (value >> 32) & PARTITION
            batch = batches[part]
            rows = batch.rows
            frames = batch.frames
            out = batch.frames_len
            wire.touched |= cython.cast(cython.ulonglong, 1) << part
        if publisher_of != part:
            publisher = wire.publishers[part] if wire.publishers is not None else 0
            if publisher == 0:
                wire.partition = part
                wire.stop = PUBLISHER
                break
            publisher_of = part
        if qos:
            if qos == 2:
                if wire.qos2_open is None:
                    wire.qos2_open = bytearray(8192)
                if wire.qos2_open[pid >> 3] >> (pid & 7) & 1:
                    # Sent again before PUBREL: it is in the log already. MQTT 5.0, 4.3.3.
                    if run_at >= 0:
                        copy(frames, out, buf, run_at, pos - run_at)
                        out += pos - run_at
                        run_at = -1
                    put_ack(acks_of(wire), 0x50, pid)
                    wire.others += 1
                    wire.answers += 1
                    wire.ack_parts |= cython.cast(cython.ulonglong, 1) << (part & 63)
                    pos = stop
                    continue
                if wire.undecided and pid != wire.passed:
                    if run_at >= 0:
                        copy(frames, out, buf, run_at, pos - run_at)
                        out += pos - run_at
                        run_at = -1
                    wire.packet_id = pid
                    wire.partition = part
                    wire.stop = UNDECIDED
                    wire.frame_bytes = stop - pos
                    break
                if wire.restores_qos and row_flags & ROW_PROPERTIES:
                    said = said_qos_at(buf, props_at, props_end)
                    if said >= 0:
                        verbatim = False
                        if buf[said + RAISED_BYTES - 1] == 0x31:
                            head = (head & 0xF9) | 2
                            row_flags = (row_flags & 0xFFFC) | 1
            if wire.v5 and wire.unacknowledged >= wire.receive_maximum:
                wire.refuse(0x93, "more than %d unacknowledged PUBLISH packets" % wire.receive_maximum)
                break
        if (batch.refusing or (head & 1 and batch.full_of_retained and payload_at != stop)) and not wire.own:
            if run_at >= 0:
                copy(frames, out, buf, run_at, pos - run_at)
                out += pos - run_at
                run_at = -1
            wire.partition = part
            wire.stop = OTHER
            wire.frame_bytes = stop - pos
            break
        # Room: a verbatim run is copied later, so count what it will need.
        row_at = batch.count * 32
        i = out + (stop - run_at if run_at >= 0 else stop - pos) + 65540
        if row_at + 32 > len(batch.rows) or i > len(batch.frames):
            wire.frame_bytes = end - pos + 65540 + (pos - run_at if run_at >= 0 else 0)
            wire.partition = part
            wire.stop = FULL
            break
        if head & 1:
            row_flags |= ROW_RETAIN
            chunk_flags |= CHUNK_RETAIN
        if payload_at == stop:
            row_flags |= ROW_EMPTY
        if qos:
            chunk_flags |= CHUNK_QOS
            wire.unacknowledged += 1
            wire.answers += 1
            if qos == 1:
                put_ack(acks_of(wire), 0x40, pid)
                wire.pubacks += 1
            else:
                wire.qos2_open[pid >> 3] |= 1 << (pid & 7)
                put_ack(acks_of(wire), 0x50, pid)
                if not wire.own:  # a will has none of its client's packet ids
                    batch.put_tag(pid, wire.session_tag)
            wire.ack_parts |= cython.cast(cython.ulonglong, 1) << (part & 63)
        put_u32(rows, row_at, value & LOW)
        if verbatim and minimal and not head & 9:
            if run_at < 0:
                run_at = pos
            put_u32(rows, row_at + 4, out + (pos - run_at))
            put_u32(rows, row_at + 20, payload_at - pos)
        else:
            if run_at >= 0:
                copy(frames, out, buf, run_at, pos - run_at)
                out += pos - run_at
                run_at = -1
            put_u32(rows, row_at + 4, out)
            if not minimal:  # allowed before MQTT 5, but not what a subscriber should get
                frames[out] = head & 0xF6
                i = put_varint(frames, out + 1, rem)
                copy(frames, i, buf, at, rem)
                put_u32(rows, row_at + 20, i + payload_at - at - out)
                out = i + rem
            elif verbatim:  # only DUP or RETAIN has to go
                frame_len = stop - pos
                copy(frames, out, buf, pos, frame_len)
                frames[out] = head & 0xF6
                put_u32(rows, row_at + 20, payload_at - pos)
                out += frame_len
            else:
                i = write_without(
                    frames, out, buf, head, topic_at, topic_len, key, props_at, props_end, found.alias_at, said, stop
                )  # fmt: skip
                put_u32(rows, row_at + 20, i - (stop - payload_at) - out)
                if props_end - props_at == (3 if found.alias_at >= 0 else 0) + (RAISED_BYTES if said >= 0 else 0):
                    row_flags &= ~ROW_PROPERTIES
                said = -1
                out = i
        put_u32(rows, row_at + 8, 0)
        put_u32(rows, row_at + 12, 0)
        put_u32(rows, row_at + 16, 0)
        put_u32(rows, row_at + 24, publisher)
        put_u32(rows, row_at + 28, row_flags)
        form = row_flags & (ROW_V5 | 3)
        if batch.count == 0:
            batch.first_form = form
        if form != batch.first_form or row_flags & (ROW_EXPIRY | ROW_RETAIN):
            batch.flags &= ~CHUNK_UNIFORM
        batch.flags |= chunk_flags
        batch.count += 1
        wire.published += 1
        pos = stop
    if last_at >= 0:
        wire.last_key = cut_bytes(buf, last_at, last_len)
        wire.last_value = value
    if batch is not None:
        if run_at >= 0:
            copy(frames, out, buf, run_at, pos - run_at)
            out += pos - run_at
        batch.frames_len = out
    return pos


@cython.cfunc
def write_without(
    out: cython.p_uchar, at: cython.Py_ssize_t, buf: cython.pointer(cython.const[cython.uchar]), head: cython.uint,
    topic_at: cython.Py_ssize_t, topic_len: cython.Py_ssize_t, key: object, props_at: cython.Py_ssize_t,
    props_end: cython.Py_ssize_t, alias_at: cython.Py_ssize_t, said: cython.Py_ssize_t, stop: cython.Py_ssize_t,
) -> cython.Py_ssize_t:  # fmt: skip
    """Write the frame with its full topic, without its alias, and without the property at `said`; -1: there is none.

    returns: its end. It grows by a topic at most"""
    name: cython.pointer(cython.const[cython.uchar])
    pid_at: cython.Py_ssize_t = topic_at + topic_len
    # What is left out, in the order in which it stands.
    first: cython.Py_ssize_t = alias_at
    first_len: cython.Py_ssize_t = 3 if alias_at >= 0 else 0
    second: cython.Py_ssize_t = said
    second_len: cython.Py_ssize_t = RAISED_BYTES if said >= 0 else 0
    props_len: cython.Py_ssize_t = props_end - props_at - first_len - second_len
    size: cython.Py_ssize_t
    full: cython.Py_ssize_t = topic_len
    if topic_len == 0:
        name = key
        full = len(key)
    size = 2 + full + (2 if head & 6 else 0) + varint_size(props_len) + props_len + (stop - props_end)
    out[at] = head & 0xF6
    at = put_varint(out, at + 1, size)
    out[at] = full >> 8
    out[at + 1] = full & 255
    at += 2
    if topic_len == 0:
        copy(out, at, name, 0, full)
    else:
        copy(out, at, buf, topic_at, full)
    at += full
    if head & 6:
        out[at] = buf[pid_at]
        out[at + 1] = buf[pid_at + 1]
        at += 2
    at = put_varint(out, at, props_len)
    if first > second:
        first, first_len, second, second_len = second, second_len, first, first_len
    if first >= 0:
        copy(out, at, buf, props_at, first - props_at)
        at += first - props_at
        props_at = first + first_len
    copy(out, at, buf, props_at, second - props_at)
    at += second - props_at
    props_at = second + second_len
    copy(out, at, buf, props_at, stop - props_at)
    return at + (stop - props_at)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def varint_size(value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    if value < 128:
        return 1
    if value < 16384:
        return 2
    if value < 2097152:
        return 3
    return 4


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_varint(out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while value >= 128:
        out[at] = (value & 127) | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1
