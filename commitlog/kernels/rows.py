"""Kernel: number, join and search the rows of chunks. docs/log-format.md, "Row".

Takes rows as bytes, gives rows and numbers. Knows no file and no topic's name."""

import cython


def number_rows(rows: object, count: cython.Py_ssize_t, next_offsets: object) -> cython.Py_ssize_t:
    """Give each row the next offset of its topic. Returns -1, or the row whose topic id is unknown."""
    words: cython.uint[::1] = memoryview(rows).cast("I")
    following: cython.ulonglong[::1] = next_offsets
    known: cython.Py_ssize_t = following.shape[0]
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
        words[at + 2] = offset & 0xFFFFFFFF
        words[at + 3] = offset >> 32
    return -1


def shift_rows(rows: object, first: cython.Py_ssize_t, frames_more: cython.uint, ts_more: cython.uint) -> None:
    """Move rows `first` on by as many bytes of frames and µs: their chunk was put behind another."""
    words: cython.uint[::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = words.shape[0] // 8
    i: cython.Py_ssize_t
    for i in range(first, total):
        words[i * 8 + 1] += frames_more
        words[i * 8 + 4] += ts_more


def first_seen(rows: object, column: cython.Py_ssize_t, seen: object) -> list[tuple[int, int]]:
    """(number, topic offset) of each topic (column 0) or publisher (column 6) not yet marked in `seen`; marks them.

    seen: a byte a number, long enough for every number in the rows
    """
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    marks: cython.uchar[::1] = seen
    known: cython.Py_ssize_t = marks.shape[0]
    total: cython.Py_ssize_t = words.shape[0] // 8
    i: cython.Py_ssize_t
    number: cython.uint
    found: list = []
    for i in range(total):
        number = words[i * 8 + column]
        if number < known and not marks[number]:
            marks[number] = 1
            found.append(
                (number, words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32))
            )
    return found


def bounds(rows: object) -> tuple[int, int, int]:
    """(lowest topic id, highest topic id, greatest ts_delta) of some rows; there must be one at least."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = words.shape[0] // 8
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
    high: cython.Py_ssize_t = words.shape[0] // 8
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
    total: cython.Py_ssize_t = words.shape[0] // 8
    i: cython.Py_ssize_t
    for i in range(total):
        if words[i * 8] == topic_id:
            if (words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)) >= offset:
                return i
    return -1


def topic_column(rows: object) -> bytes:
    """The topic ids of some rows, as u32."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = words.shape[0] // 8
    out: object = bytearray(4 * total + 4)
    ids: cython.uint[::1] = memoryview(out).cast("I")
    i: cython.Py_ssize_t
    for i in range(total):
        ids[i] = words[i * 8]
    return bytes(out[: 4 * total])


def count_topics(column: object, counts: object) -> None:
    """Count each topic of a column into `counts` (array of u32 by topic id)."""
    ids: cython.const[cython.uint][::1] = memoryview(column).cast("I")
    by_topic: cython.uint[::1] = counts
    known: cython.Py_ssize_t = by_topic.shape[0]
    i: cython.Py_ssize_t
    for i in range(ids.shape[0]):
        if ids[i] < known:
            by_topic[ids[i]] += 1


def place_rows(column: object, first_row: cython.uint, starts: object, out: object) -> None:
    """Put the numbers of rows (from `first_row`) behind one another by topic: out[starts[topic]++] = row."""
    ids: cython.const[cython.uint][::1] = memoryview(column).cast("I")
    at: cython.uint[::1] = starts
    numbers: cython.uint[::1] = out
    known: cython.Py_ssize_t = at.shape[0]
    i: cython.Py_ssize_t
    topic: cython.uint
    for i in range(ids.shape[0]):
        topic = ids[i]
        if topic < known:
            numbers[at[topic]] = first_row + i
            at[topic] += 1


def frames_in_order(rows: object, frames_len: cython.Py_ssize_t) -> bool:
    """Whether every frame begins behind the one before and inside the frames, with its payload inside it."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = words.shape[0] // 8
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    for i in range(total):
        start = words[i * 8 + 1]
        end = words[i * 8 + 9] if i + 1 < total else frames_len
        if (i == 0 and start) or end <= start or end > frames_len or start + words[i * 8 + 5] > end:
            return False
    return True
