"""Kernel: number, join and search the rows of chunks. docs/reference/log-format.md, "Row".

Rows are bytes in and out; topics are numbers. Knows no file."""

import cython

if cython.compiled:
    from cython.cimports.commitlog.kernels.buffers import octets
    from cython.cimports.commitlog.kernels.buffers import words as words_at
    from cython.cimports.libc.string import memcpy

# Written out where it is used, the compiler takes it for a Python number.
LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
HEADER_BYTES = cython.declare(cython.Py_ssize_t, 128)
UNIFORM = cython.declare(cython.uint, 32)
FEW = cython.declare(cython.Py_ssize_t, 256)
QOS_AND_VERSION = cython.declare(cython.uint, 19)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def copy(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    n: cython.Py_ssize_t,
) -> cython.void:
    if n <= 0:
        return
    if cython.compiled:
        memcpy(cython.address(out[at]), cython.address(data[0]), n)
    else:
        out[at : at + n] = data[:n]


def lay_out(chunks: list, buffer: object, frames_at: cython.Py_ssize_t) -> tuple[int, bytes]:
    """Put consecutive chunks into `buffer` as one: rows from byte 128 on, frames from `frames_at` on.

    returns: chunk flags and QoS 2 tags of the whole. The buffer must have room for all of it.
    """
    out: cython.uchar[::1] = memoryview(buffer)
    words: cython.uint[::1] = memoryview(buffer).cast("I")
    rows: cython.const[cython.uchar][::1]
    frames: cython.const[cython.uchar][::1]
    row_at: cython.Py_ssize_t = HEADER_BYTES
    at: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    w: cython.Py_ssize_t
    count: cython.Py_ssize_t
    flags: cython.uint = 0
    chunk_flags: cython.uint
    uniform: cython.uint = UNIFORM
    form: cython.uint = 0
    base_ts: cython.longlong = chunks[0].base_ts
    ts_more: cython.uint
    tags: bytearray = bytearray()
    for chunk in chunks:
        rows = memoryview(chunk.rows)
        frames = memoryview(chunk.frames)
        count = len(rows) // 32
        ts_more = chunk.base_ts - base_ts
        copy(out, row_at, rows, len(rows))
        if first:
            for i in range(count):
                w = row_at // 4 + i * 8
                words[w + 1] += at
                words[w + 4] += ts_more
        copy(out, frames_at + at, frames, len(frames))
        if chunk.tags:
            i = len(tags) // 4
            tags += chunk.tags
            if first:
                with memoryview(tags) as view:
                    add_to_rows(view.cast("I"), i, first)
        chunk_flags = chunk.flags
        flags |= chunk_flags
        if first == 0:
            form = rows[28] & QOS_AND_VERSION
        if not chunk_flags & UNIFORM or rows[28] & QOS_AND_VERSION != form:
            uniform = 0
        first += count
        row_at += len(rows)
        at += len(frames)
    return (flags & ~UNIFORM) | uniform, bytes(tags)


@cython.cfunc
def add_to_rows(tags: object, at: cython.Py_ssize_t, first: cython.Py_ssize_t) -> object:
    """Have the tags from word `at` on name rows behind `first` others. docs/reference/log-format.md, "Aux"."""
    words: cython.uint[::1] = tags
    for i in range(at, len(words), 2):
        words[i] += first
    return None


def number_rows(rows: object, count: cython.Py_ssize_t, next_offsets: object) -> cython.Py_ssize_t:
    """Give each row the next offset of its topic. Returns -1, or the row whose topic id is unknown."""
    words: cython.p_uint
    following: cython.pointer(cython.ulonglong)
    if cython.compiled:
        words, following = words_at(rows), cython.cast(cython.pointer(cython.ulonglong), octets(next_offsets))
    else:
        words, following = memoryview(rows).cast("I"), next_offsets
    known: cython.Py_ssize_t = len(next_offsets)
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    topic: cython.uint
    offset: cython.ulonglong
    for i in range(count):
        at = i * 8
        topic = words[at]
        if topic >= known:
            return i
        offset = following[topic]
        following[topic] = offset + 1
        words[at + 2] = offset & LOW
        words[at + 3] = offset >> 32
    return -1


def first_seen(rows: object, column: cython.Py_ssize_t, seen: object) -> list[tuple[int, int]]:
    """(number, topic offset) of each topic (column 0) or publisher (column 6) not yet marked in `seen`; marks them.

    seen: a byte a number, long enough for every number in the rows
    """
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    marks: cython.uchar[::1] = memoryview(seen)
    known: cython.Py_ssize_t = len(marks)
    total: cython.Py_ssize_t = len(words) // 8
    i: cython.Py_ssize_t
    number: cython.uint
    found: list = []
    for i in range(total):
        number = words[i * 8 + column]
        if number < known and not marks[number]:
            marks[number] = 1
            found.append((number, words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)))
    return found


def bounds(rows: object) -> tuple[int, int, int]:
    """(lowest topic id, highest topic id, greatest ts_delta) of some rows; there must be one at least."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = len(words) // 8
    low: cython.uint = words[0]
    high: cython.uint = words[0]
    late: cython.uint = words[4]
    i: cython.Py_ssize_t
    for i in range(1, total):
        if words[i * 8] < low:
            low = words[i * 8]
        if words[i * 8] > high:
            high = words[i * 8]
        if words[i * 8 + 4] > late:
            late = words[i * 8 + 4]
    return low, high, late


def first_at_time(rows: object, ts_delta: cython.longlong) -> cython.Py_ssize_t:
    """The first row with at least that ts_delta; the number of rows when there is none."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = len(words) // 8
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if words[middle * 8 + 4] < ts_delta:
            low = middle + 1
        else:
            high = middle
    return low


def first_of_topic(rows: object, topic_id: cython.uint, offset: cython.ulonglong) -> cython.Py_ssize_t:
    """The first row of a topic with at least that offset, or -1."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = len(words) // 8
    i: cython.Py_ssize_t
    for i in range(total):
        if words[i * 8] == topic_id:
            if (words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)) >= offset:
                return i
    return -1


def topic_column(rows: object) -> tuple[bytes, int]:
    """The topic ids of some rows, as u32, and the highest of them; there must be one row at least."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = len(words) // 8
    out: object = bytearray(4 * total + 4)
    ids: cython.uint[::1] = memoryview(out).cast("I")
    highest: cython.uint = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(total):
            ids[i] = words[i * 8]
            if ids[i] > highest:
                highest = ids[i]
    return bytes(out[: 4 * total]), highest


def index_few(
    rows: object, seen: object, first: object, following: object, column: object, at: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """`topic_column`, `first_offsets` and `follow` of a few rows at once, where `seen` has all their topics.

    column: u32; those from number `at` on, 256 at most, are set to the topic ids
    returns: how many rows; -1, and nothing is noted: some topic is beyond `seen`, or there are many rows"""
    words: cython.p_uint
    ids: cython.p_uint
    marks: cython.p_uchar
    firsts: cython.pointer[cython.ulonglong]
    nexts: cython.pointer[cython.ulonglong]
    if cython.compiled:
        words, marks = words_at(rows), octets(seen)
        firsts = cython.cast(cython.pointer[cython.ulonglong], octets(first))
        nexts = cython.cast(cython.pointer[cython.ulonglong], octets(following))
        ids = words_at(column)
    else:
        words, marks, firsts, nexts = memoryview(rows).cast("I"), seen, first, following
        ids = memoryview(column).cast("I")
    total: cython.Py_ssize_t = len(rows) // 32
    known: cython.Py_ssize_t = len(seen)
    i: cython.Py_ssize_t
    topic: cython.uint
    offset: cython.ulonglong
    if total > FEW:
        return -1
    for i in range(total):
        if words[i * 8] >= known:
            return -1
    for i in range(total):
        topic = words[i * 8]
        offset = words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)
        if not marks[topic]:
            marks[topic] = 1
            firsts[topic] = offset
        nexts[topic] = offset + 1
        ids[at + i] = topic
    return total


def follow(rows: object, following: object) -> None:
    """Store the next offset of each topic of some rows (array of u64 by topic id)."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    offsets: cython.ulonglong[::1] = memoryview(following)
    known: cython.Py_ssize_t = len(offsets)
    total: cython.Py_ssize_t = len(words) // 8
    i: cython.Py_ssize_t
    topic: cython.uint
    with cython.nogil:
        for i in range(total):
            topic = words[i * 8]
            if topic < known:
                offsets[topic] = (words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)) + 1


def count_topics(column: object, counts: object) -> None:
    """Count each topic of a column into `counts` (array of u32 by topic id)."""
    ids: cython.const[cython.uint][::1] = memoryview(column).cast("I")
    by_topic: cython.uint[::1] = memoryview(counts)
    known: cython.Py_ssize_t = len(by_topic)
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(ids)):
            if ids[i] < known:
                by_topic[ids[i]] += 1


def place_rows(column: object, first_row: cython.uint, starts: object, out: object) -> None:
    """Put the numbers of rows (from `first_row`) behind one another by topic: out[starts[topic]++] = row."""
    ids: cython.const[cython.uint][::1] = memoryview(column).cast("I")
    at: cython.uint[::1] = memoryview(starts)
    numbers: cython.uint[::1] = memoryview(out)
    known: cython.Py_ssize_t = len(at)
    i: cython.Py_ssize_t
    topic: cython.uint
    with cython.nogil:
        for i in range(len(ids)):
            topic = ids[i]
            if topic < known:
                numbers[at[topic]] = first_row + i
                at[topic] += 1


def frames_in_order(rows: object, frames_len: cython.Py_ssize_t) -> bool:
    """Whether every frame begins after the previous one and inside the frames, and contains its payload."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = len(words) // 8
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    for i in range(total):
        start = words[i * 8 + 1]
        end = words[i * 8 + 9] if i + 1 < total else frames_len
        if (i == 0 and start) or end <= start or end > frames_len or start + words[i * 8 + 5] > end:
            return False
    return True


def translate(rows: object, count: cython.Py_ssize_t, topics: object, publishers: object) -> cython.Py_ssize_t:
    """Replace the topic id and publisher number of each row by those in two tables of u32.

    Returns -1, or the row whose topic or publisher the tables do not have (0xFFFFFFFF: not known)."""
    words: cython.uint[::1] = memoryview(rows).cast("I")
    topic_of: cython.const[cython.uint][::1] = memoryview(topics)
    publisher_of: cython.const[cython.uint][::1] = memoryview(publishers)
    topics_len: cython.Py_ssize_t = len(topic_of)
    publishers_len: cython.Py_ssize_t = len(publisher_of)
    i: cython.Py_ssize_t
    topic: cython.uint
    publisher: cython.uint
    for i in range(count):
        topic = words[i * 8]
        publisher = words[i * 8 + 6]
        if topic >= topics_len or publisher >= publishers_len:
            return i
        topic = topic_of[topic]
        publisher = publisher_of[publisher]
        if topic == LOW or publisher == LOW:
            return i
        words[i * 8] = topic
        words[i * 8 + 6] = publisher
    return -1
