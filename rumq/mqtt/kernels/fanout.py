"""Kernel: turn rows and frames of the log into the bytes that subscribers get.

MQTT 5.0, 3.3; docs/reference/log-format.md. `build` makes the bytes of a group of subscribers for a chunk, once;
`number` a session's own copy with its packet ids, up to its credit. Which rows are wanted, how, and when: arguments."""

from typing import Any

import cython

from rumq.mqtt.kernels.delivery_properties import published_by
from rumq.mqtt.kernels.publish_properties import NOT_RAISED
from rumq.mqtt.kernels.window import Window

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.rumq.mqtt.kernels.buffers import octets
    from cython.cimports.rumq.mqtt.kernels.buffers import words as words_at
    from cython.cimports.rumq.mqtt.kernels.delivery_properties import expiry_at, location, says_qos
    from cython.cimports.rumq.mqtt.kernels.window import Window
else:
    from rumq.mqtt.kernels.delivery_properties import expiry_at, location, says_qos

FLAGS_AT = cython.declare(cython.Py_ssize_t, 28)  # of a row
ROW_RETAIN = cython.declare(cython.uint, 4)
ROW_EXPIRY = cython.declare(cython.uint, 8)
ROW_V5 = cython.declare(cython.uint, 16)
NO_ROWS: Any = ()  # mypy would take an empty tuple for the only value


@cython.cclass
class Form:
    """How a subscription wants its messages. Its fields are typed in fanout.pxd."""

    def __init__(
        self, qos: int, retain: int, no_local: bool, identifiers: bytes, located: bytes, publishers: object = None,
        is_live: bool = False, raised: bytes | None = None,
    ) -> None:  # fmt: skip
        """retain: 0 never, 1 as published, 2 always; identifiers: encoded properties; located: the partition's
        name where offsets are to be told as user properties, else empty; publishers: the partition's list of client
        ids by publisher number, where who published is to be told, else None; is_live: records of QoS 0 may be sent
        before they are committed, so their offsets, which a crash could give to others, are not told.
        raised: messages of QoS 1 are sent with QoS 2 and these properties; None: with QoS 1. Where there are any, one
        of QoS 2 whose publisher has set such a property itself is sent with another one behind it"""
        self.qos = qos
        self.retain = retain
        self.no_local = no_local
        self.identifiers = identifiers
        self.located = located
        self.publishers = publishers
        self.is_live = is_live
        self.raised = raised
        told = bool(located) or publishers is not None
        self.is_plain = not (identifiers or told or no_local or retain == 2 or raised is not None)

    def plain(self) -> bool:
        """Whether a stored frame of QoS up to `qos` can go out as it is."""
        return self.is_plain


@cython.cclass
class Blob:
    """Frames ready to send: `starts[i]` is where frame i begins, `rows[i]` which row of the chunk it was."""

    def __init__(
        self, data: Any, count: int, qos_count: int, starts: Any, rows: Any, base_lsn: int, dated: bool
    ) -> None:
        self.data = data
        self.count = count
        self.qos_count = qos_count
        self.starts = starts
        self.rows = rows
        self.base_lsn = base_lsn
        self.expired = self.too_large = NO_ROWS
        self.dated = dated
        self.stored_rows = NO_ROWS
        self.first_row = 0

    def locate(self) -> None:
        """Make `starts` and `rows` of consecutive frames of a chunk as they are stored; most never need them."""
        if self.starts is not None:
            return
        words: cython.const[cython.uint][::1] = memoryview(self.stored_rows).cast("I")
        starts = bytearray(4 * (self.count + 1))
        numbers = bytearray(4 * (self.count + 1))
        s: cython.uint[::1] = memoryview(starts).cast("I")
        r: cython.uint[::1] = memoryview(numbers).cast("I")
        i: cython.Py_ssize_t
        for i in range(self.count):
            s[i] = words[(self.first_row + i) * 8 + 1] - words[self.first_row * 8 + 1]
            r[i] = self.first_row + i
        s[self.count] = len(self.data)
        self.starts = memoryview(starts).cast("I")
        self.rows = memoryview(numbers).cast("I")

    def start(self, i: int) -> int:
        """Where frame i begins; the end of the bytes for `count`."""
        self.locate()
        return int(self.starts[i])

    def lsn(self, i: cython.Py_ssize_t) -> int:
        """The lsn of frame i."""
        self.locate()
        rows: cython.const[cython.uint][::1] = self.rows
        return self.base_lsn + rows[i]

    def first_at_or_after(self, lsn: int) -> int:
        """The first frame whose lsn is at least `lsn`; `count` when there is none."""
        self.locate()
        rows: cython.const[cython.uint][::1] = self.rows
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.count
        middle: cython.Py_ssize_t
        wanted: cython.longlong = lsn - self.base_lsn
        while low < high:
            middle = (low + high) // 2
            if rows[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def frame_after(self, at: int) -> int:
        """The first frame that begins at or after byte `at`."""
        self.locate()
        starts: cython.const[cython.uint][::1] = self.starts
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.count
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if starts[middle] < at:
                low = middle + 1
            else:
                high = middle
        return low

    def part(self, first: int, stop: int) -> memoryview:
        """The bytes of frames first..stop."""
        self.locate()
        starts: cython.const[cython.uint][::1] = self.starts
        return memoryview(self.data)[starts[first] : starts[stop]]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def copy(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
) -> cython.void:
    if n <= 0:
        return
    if cython.compiled:
        memcpy(cython.address(out[at]), cython.address(data[start]), n)
    else:
        out[at : at + n] = data[start : start + n]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_varint(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while value >= 128:
        out[at] = (value & 127) | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


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
def body_at(frames: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the topic's length stands: after the remaining length."""
    at += 1
    while frames[at] >= 128:
        at += 1
    return at + 1


def first_flags(rows: object) -> cython.uint:
    """The flags of the first row. docs/reference/log-format.md, "Row"."""
    if cython.compiled:
        return octets(rows)[FLAGS_AT]
    return memoryview(rows)[FLAGS_AT]  # type: ignore[arg-type]


def whole(data: object, rows: object, count: cython.Py_ssize_t, qos: cython.bint, base_lsn: cython.ulonglong) -> Blob:
    """The blob of a chunk whose frames go out as they are."""
    blob: Blob = Blob.__new__(Blob)  # of most messages: no constructor unpacks arguments
    blob.data, blob.count, blob.qos_count, blob.base_lsn = data, count, count if qos else 0, base_lsn
    blob.starts, blob.rows, blob.expired, blob.too_large = None, None, NO_ROWS, NO_ROWS
    blob.dated, blob.stored_rows, blob.first_row = False, rows, 0
    return blob


def build(
    rows: object, frames: object, first: cython.Py_ssize_t, count: cython.Py_ssize_t, base_lsn: cython.ulonglong,
    base_ts: cython.longlong, forms: list, wanted: object, places: object, v5: cython.bint,
    packet_max: cython.Py_ssize_t, publisher: cython.uint, now: cython.longlong, aliases: object,
    alias_max: cython.Py_ssize_t, bytes_max: cython.Py_ssize_t, partition: cython.ulonglong = 0,
    numbered_max: cython.Py_ssize_t = 1 << 40,
) -> tuple[Blob, int]:  # fmt: skip
    """Build what a group gets of rows first..count; returns it and the first row not looked at.

    forms, wanted, places: row -> places[row] -> wanted[place] -> forms[that - 1]; 0 is "not wanted".
        `places` None: every row has forms[0]
    packet_max: longer packets are left out and listed in `too_large`; 0: no limit (MQTT 5.0, 3.1.2.11.4)
    publisher: number of the subscriber as a publisher, for No Local
    now: µs since 1970, for message expiry
    aliases: partition << 32 | topic id -> alias already told to this one subscriber, extended up to alias_max;
        None: no aliases
    bytes_max: stop once the output has as many bytes
    partition: whose rows they are, for aliases
    numbered_max: stop behind so many messages of QoS 1 and 2 and one more
    """
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    src: cython.const[cython.uchar][::1] = frames
    total: cython.Py_ssize_t = len(src)
    all_rows: cython.Py_ssize_t = len(words) // 8
    place_of: cython.const[cython.uint][::1] = None
    form_of: cython.const[cython.uint][::1] = None
    form: Form = forms[0]
    extra: cython.const[cython.uchar][::1] = form.identifiers
    extra_len: cython.Py_ssize_t = len(extra)
    raises: cython.bint = form.raised is not None
    raised: cython.const[cython.uchar][::1] = None
    not_raised: cython.const[cython.uchar][::1] = NOT_RAISED
    mark: cython.const[cython.uchar][::1] = None
    is_raised: cython.bint
    is_marked: cython.bint
    capacity: cython.Py_ssize_t
    buffer: object
    out: cython.uchar[::1]
    starts: object = bytearray(4 * (count - first + 1))
    numbers: object = bytearray(4 * (count - first + 1))
    s: cython.uint[::1] = memoryview(starts).cast("I")
    r: cython.uint[::1] = memoryview(numbers).cast("I")
    expired: list = []
    too_large: list = []
    n: cython.Py_ssize_t = 0
    qos_count: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    w: cython.Py_ssize_t
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    flags: cython.uint
    qos: cython.uint
    source_qos: cython.uint
    head: cython.uint
    which: cython.uint = 1
    last_which: cython.uint = 1
    topic_at: cython.Py_ssize_t
    topic_len: cython.Py_ssize_t
    props_at: cython.Py_ssize_t
    props_len: cython.Py_ssize_t
    payload_at: cython.Py_ssize_t
    where: cython.Py_ssize_t
    dated: cython.bint = False
    interval: cython.longlong = 0
    age: cython.longlong
    size: cython.Py_ssize_t
    new_props: cython.Py_ssize_t
    shift: cython.int
    byte: cython.uint
    alias: cython.Py_ssize_t
    named: cython.bint
    told: bytes

    if raises:
        raised = form.raised
    if places is not None:
        place_of = places
        form_of = wanted
    if first < count:
        capacity = (
            (words[count * 8 + 1] if count < all_rows else total)
            - words[first * 8 + 1]
            + (count - first) * (8 + extra_len)
            + 512
        )
        if capacity > bytes_max + 65536:
            capacity = bytes_max + 65536
    else:
        capacity = 512
    buffer = bytearray(capacity)
    out = buffer
    i = first
    while i < count:
        if at >= bytes_max or qos_count > numbered_max:
            break
        w = i * 8
        if places is not None:
            which = form_of[place_of[i]]
            if which == 0:
                i += 1
                continue
            if which != last_which:
                form = forms[which - 1]
                extra = form.identifiers
                extra_len = len(extra)
                raises = form.raised is not None
                if raises:
                    raised = form.raised
                last_which = which
        flags = words[w + 7] & 0xFFFF
        if form.no_local and publisher and words[w + 6] == publisher:
            i += 1
            continue
        start = words[w + 1]
        end = words[w + 9] if i + 1 < all_rows else total
        if end <= start:  # left out by the shard that the chunk is from: nobody here wanted it
            i += 1
            continue
        source_qos = flags & 3
        qos = form.qos if form.qos < source_qos else source_qos
        is_raised = raises and qos == 1
        if is_raised:
            qos = 2
        topic_at = body_at(src, start)
        topic_len = (src[topic_at] << 8) | src[topic_at + 1]
        payload_at = start + words[w + 5]
        props_at = topic_at + 2 + topic_len + (2 if source_qos else 0)
        props_len = 0
        if flags & ROW_V5:
            shift = 0
            while True:
                byte = src[props_at]
                props_at += 1
                props_len |= cython.cast(cython.Py_ssize_t, byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
        is_marked = is_raised
        mark = raised
        if raises and source_qos == 2 and not is_raised and props_len and len(raised):
            is_marked = qos == 2 and says_qos(src, props_at, props_at + props_len)
            mark = not_raised
        where = -1
        if flags & ROW_EXPIRY:
            dated = True
            where = expiry_at(src, props_at, props_at + props_len)
            interval = (
                (cython.cast(cython.longlong, src[where]) << 24)
                | (src[where + 1] << 16)
                | (src[where + 2] << 8)
                | src[where + 3]
            )
            age = now - base_ts - words[w + 4]
            if age < 0:
                age = 0
            if age > interval * 1_000_000:
                expired.append(i)
                i += 1
                continue
            interval -= age // 1_000_000
        head = 0x30 | (qos << 1)
        if form.retain == 2 or (form.retain == 1 and flags & ROW_RETAIN):
            head |= 1
        told = b""
        alias = 0
        named = True
        if v5 and form.located and (source_qos or not form.is_live):
            told = location(
                form.located,
                words[w + 2] | (cython.cast(cython.ulonglong, words[w + 3]) << 32),
                base_lsn + i,
                base_ts + words[w + 4],
            )
        if v5 and form.publishers is not None:
            told = told + published_by(form.publishers, words[w + 6])
        if aliases is not None:
            known = aliases.get(partition << 32 | words[w])
            if known is not None:
                alias = known
                named = False
            elif len(aliases) < alias_max:
                alias = len(aliases) + 1
        size = 2 + (topic_len if named else 0) + (2 if qos else 0) + (end - payload_at)
        new_props = 0
        if v5:
            new_props = props_len + extra_len + len(told) + (3 if alias else 0)
            if is_marked:
                new_props += len(mark)
            size += new_props + varint_size(new_props)
        if packet_max and 1 + varint_size(size) + size > packet_max:
            too_large.append(i)
            i += 1
            continue
        if alias and named:
            aliases[partition << 32 | words[w]] = alias
        if at + size + 8 > capacity:
            out = None
            buffer.extend(bytes(max(size + 8, capacity)))
            capacity = len(buffer)
            out = buffer
        s[n] = at
        r[n] = i
        n += 1
        if qos:
            qos_count += 1
        out[at] = head
        at = put_varint(out, at + 1, size)
        if named:
            copy(out, at, src, topic_at, 2 + topic_len)
            at += 2 + topic_len
        else:
            out[at] = 0
            out[at + 1] = 0
            at += 2
        if qos:
            out[at] = 0
            out[at + 1] = 0
            at += 2
        if v5:
            at = put_varint(out, at, new_props)
            if props_len:
                copy(out, at, src, props_at, props_len)
                if where >= 0:
                    where = at + (where - props_at)
                    out[where] = (interval >> 24) & 255
                    out[where + 1] = (interval >> 16) & 255
                    out[where + 2] = (interval >> 8) & 255
                    out[where + 3] = interval & 255
                at += props_len
            if extra_len:
                copy(out, at, extra, 0, extra_len)
                at += extra_len
            if alias:
                out[at] = 0x23
                out[at + 1] = alias >> 8
                out[at + 2] = alias & 255
                at += 3
            if told:
                copy(out, at, told, 0, len(told))
                at += len(told)
            if is_marked:
                copy(out, at, mark, 0, len(mark))
                at += len(mark)
        copy(out, at, src, payload_at, end - payload_at)
        at += end - payload_at
        i += 1
    s[n] = at
    out = None
    with memoryview(buffer) as view:
        data = bytes(view[:at])
    blob = Blob(data, n, qos_count, memoryview(starts).cast("I"), memoryview(numbers).cast("I"), base_lsn, dated)
    blob.expired = expired
    blob.too_large = too_large
    return blob, i


def run_stop(blob: Blob, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> int:
    """One behind the frames from `first` on, below `stop`, that are of QoS 0 if it is, of QoS 1 or 2 if it is."""
    blob.locate()
    starts: cython.const[cython.uint][::1] = blob.starts
    src: cython.const[cython.uchar][::1] = blob.data
    i: cython.Py_ssize_t = first
    stop = min(stop, blob.count)
    if first >= stop:
        return first
    if blob.qos_count == blob.count:
        return stop
    is_numbered: cython.bint = src[starts[first]] & 6 != 0
    while i < stop and (src[starts[i]] & 6 != 0) == is_numbered:
        i += 1
    return i


def number(
    window: Window,
    blob: Blob,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    reader: cython.uint,
    bytes_max: cython.Py_ssize_t,
    dup_below: cython.ulonglong = 0,
) -> tuple[bytes | bytearray | memoryview, int]:
    """One session's copy of frames first..stop, with packet ids, as far as its credit and `bytes_max` go.

    dup_below: messages below this lsn may have been sent before, so they carry DUP
    returns: the bytes, and the first frame not taken. At least one frame is taken if there is credit.
    """
    starts: cython.p_uint
    rows: cython.p_uint
    src: cython.p_uchar
    out: cython.p_uchar
    states: cython.p_uchar
    lsns: cython.pointer[cython.ulonglong]
    readers: cython.p_uint
    # Frame i begins at `starts[base + i * step] - offset`: the rows say where, if frames are as they are stored.
    base: cython.Py_ssize_t = 0
    step: cython.Py_ssize_t = 1
    offset: cython.Py_ssize_t = 0
    is_stored: cython.bint = blob.starts is None
    credit: cython.Py_ssize_t = window.credit()
    i: cython.Py_ssize_t = first
    k: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    end: cython.Py_ssize_t
    at: cython.Py_ssize_t
    used: cython.Py_ssize_t = 0
    pid: cython.uint
    qos: cython.uint
    slot: cython.ulonglong
    lsn: cython.ulonglong
    stop = min(stop, blob.count)
    if first >= stop:
        return b"", first
    if cython.compiled:
        src, starts = octets(blob.data), words_at(blob.stored_rows if is_stored else blob.starts)
        rows = cython.NULL if is_stored else words_at(blob.rows)
    else:
        src, rows = blob.data, blob.rows
        starts = memoryview(blob.stored_rows).cast("I") if is_stored else blob.starts
    if is_stored:
        base, step, offset = blob.first_row * 8 + 1, 8, starts[blob.first_row * 8 + 1]
    begin = end = starts[base + first * step] - offset
    while i < stop:
        if src[end] & 6:
            if used == credit:
                break
            used += 1
        i += 1
        end = starts[base + i * step] - offset if i < blob.count else len(blob.data)
        if end - begin >= bytes_max:
            break
    if i == first:
        return b"", first
    copied: bytearray
    if cython.compiled:
        copied = PyByteArray_FromStringAndSize(cython.cast(cython.p_char, cython.address(src[begin])), end - begin)
    else:
        copied = bytearray(src[begin:end])
    if used == 0:
        return copied, i
    window.reserve(used)
    if cython.compiled:
        out = octets(copied)
        states, readers = octets(window.states), words_at(window.readers)
        lsns = cython.cast(cython.pointer[cython.ulonglong], octets(window.lsns))
    else:
        out, states = copied, window.states
        lsns, readers = memoryview(window.lsns).cast("Q"), memoryview(window.readers).cast("I")
    for k in range(first, i):
        at = starts[base + k * step] - offset - begin
        qos = (out[at] >> 1) & 3
        if qos == 0:
            continue
        lsn = blob.base_lsn + (blob.first_row + k if is_stored else rows[k])
        if lsn < dup_below:
            out[at] |= 8
        at += 1
        while out[at] >= 128:  # the remaining length
            at += 1
        at += 1
        at += 2 + ((out[at] << 8) | out[at + 1])
        pid = window.next % 65535 + 1
        out[at] = pid >> 8
        out[at + 1] = pid & 255
        slot = window.next & window.mask
        states[slot] = qos
        lsns[slot] = lsn
        readers[slot] = reader
        window.next += 1
    window.in_flight += used
    return copied, i


def again(blob: Blob, pid: int) -> bytearray:
    """The single frame of `blob` with `pid` and DUP, to be sent once more. MQTT 5.0, 4.4."""
    copied = bytearray(blob.data)
    copied[0] |= 8
    at = body_at(copied, 0)
    at += 2 + ((copied[at] << 8) | copied[at + 1])
    copied[at] = pid >> 8
    copied[at + 1] = pid & 255
    return copied
