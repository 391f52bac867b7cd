"""Kernel: encode the topic entries of a segment in the file format. docs/reference/log-format.md, "Aux" and "Index".

A segment may use a million topics: an object for each would cost more than the records. From rows, arrays by topic id
and the list of names it makes bytes. Knows no file."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# Written out where it is used, the compiler takes it for a Python number.
LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
ITEM_BYTES = cython.declare(cython.Py_ssize_t, 14)
RECORD_WORDS = cython.declare(cython.Py_ssize_t, 8)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put(out: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong, size: cython.Py_ssize_t) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(size):
        out[at + i] = (value >> (8 * i)) & 255


@cython.cfunc
@cython.inline
def put_name(out: cython.uchar[::1], at: cython.Py_ssize_t, name: bytes) -> cython.Py_ssize_t:
    """Length and text; returns where they end."""
    size: cython.Py_ssize_t = len(name)
    put(out, at, size, 2)
    if cython.compiled:
        if size:
            text: cython.p_char = name
            memcpy(cython.address(out[at + 2]), text, size)
    else:
        out[at + 2 : at + 2 + size] = name
    return at + 2 + size


def told(rows: object, seen: object, names: list, items_max: cython.Py_ssize_t) -> list[tuple[int, bytes]]:
    """The topics of some rows that are not marked in `seen`, in order, as items of aux; marks them.

    seen: a byte a topic id. returns: (number of items, the items) for each entry of at most `items_max`"""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    marks: cython.uchar[::1] = memoryview(seen)
    known: cython.Py_ssize_t = len(marks)
    total: cython.Py_ssize_t = len(words) // 8
    i: cython.Py_ssize_t
    number: cython.uint
    count: cython.Py_ssize_t = 0
    found: object = bytearray(4 * total + 4)
    at_rows: cython.uint[::1] = memoryview(found).cast("I")
    with cython.nogil:
        for i in range(total):
            number = words[i * 8]
            if number < known and not marks[number]:
                marks[number] = 1
                at_rows[count] = i
                count += 1
    pieces: list = []
    first: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    size: cython.Py_ssize_t
    at: cython.Py_ssize_t
    w: cython.Py_ssize_t
    name: bytes
    for first in range(0, count, items_max):
        stop = min(count, first + items_max)
        size = 0
        for i in range(first, stop):
            name = names[words[at_rows[i] * 8]]
            size += ITEM_BYTES + len(name)
        piece: object = bytearray(size)
        out: cython.uchar[::1] = piece
        at = 0
        for i in range(first, stop):
            w = at_rows[i] * 8
            put(out, at, words[w], 4)
            put(out, at + 4, words[w + 2] | (cython.cast(cython.ulonglong, words[w + 3]) << 32), 8)
            at = put_name(out, at + 12, names[words[w]])
        out = None
        pieces.append((stop - first, bytes(piece)))
    return pieces


def first_offsets(rows: object, seen: object, first: object) -> None:
    """Note the offset of each topic's first row (array of u64 by topic id) that is not marked in `seen`; mark it."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    marks: cython.uchar[::1] = memoryview(seen)
    offsets: cython.ulonglong[::1] = memoryview(first)
    known: cython.Py_ssize_t = len(marks)
    i: cython.Py_ssize_t
    number: cython.uint
    with cython.nogil:
        for i in range(len(words) // 8):
            number = words[i * 8]
            if number < known and not marks[number]:
                marks[number] = 1
                offsets[number] = words[i * 8 + 2] | (cython.cast(cython.ulonglong, words[i * 8 + 3]) << 32)


def table(seen: object, counts: object, first: object, following: object, starts: object) -> bytearray:
    """The record of each marked topic, by id: id, rows, first and following offset, start of its rows, 0. Fills
    `starts`, an array by topic id like the others."""
    marks: cython.const[cython.uchar][::1] = memoryview(seen)
    rows_of: cython.const[cython.uint][::1] = memoryview(counts)
    firsts: cython.const[cython.ulonglong][::1] = memoryview(first)
    followings: cython.const[cython.ulonglong][::1] = memoryview(following)
    start_of: cython.uint[::1] = memoryview(starts)
    i: cython.Py_ssize_t
    w: cython.Py_ssize_t = 0
    used: cython.Py_ssize_t = 0
    at: cython.uint = 0
    for i in range(len(marks)):
        used += marks[i]
    packed: object = bytearray(4 * RECORD_WORDS * used)
    words: cython.uint[::1] = memoryview(packed).cast("I")
    with cython.nogil:
        for i in range(len(marks)):
            if marks[i]:
                start_of[i] = at
                words[w] = i
                words[w + 1] = rows_of[i]
                words[w + 2] = firsts[i] & LOW
                words[w + 3] = firsts[i] >> 32
                words[w + 4] = followings[i] & LOW
                words[w + 5] = followings[i] >> 32
                words[w + 6] = at
                w += RECORD_WORDS
                at += rows_of[i]
    words = None
    return packed


def in_order(packed: object) -> bool:
    """Whether the ids of a table's records rise."""
    words: cython.const[cython.uint][::1] = memoryview(packed).cast("I")
    i: cython.Py_ssize_t
    rising: cython.bint = True
    with cython.nogil:
        for i in range(1, len(words) // RECORD_WORDS):
            rising &= words[i * RECORD_WORDS] > words[(i - 1) * RECORD_WORDS]
    return rising


def raise_offsets(packed: object, offsets: object) -> None:
    """Raise the next offset of each topic of a table (array of u64 by topic id) to what follows its rows there."""
    words: cython.const[cython.uint][::1] = memoryview(packed).cast("I")
    known: cython.ulonglong[::1] = memoryview(offsets)
    i: cython.Py_ssize_t
    w: cython.Py_ssize_t
    following: cython.ulonglong
    with cython.nogil:
        for i in range(len(words) // RECORD_WORDS):
            w = i * RECORD_WORDS
            following = words[w + 4] | (cython.cast(cython.ulonglong, words[w + 5]) << 32)
            if words[w] < len(known) and following > known[words[w]]:
                known[words[w]] = following


def names_of(packed: object, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, names: list) -> bytes:
    """Id and name of each record first..stop of a table, packed."""
    words: cython.const[cython.uint][::1] = memoryview(packed).cast("I")
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 0
    name: bytes
    for i in range(first, stop):
        name = names[words[i * RECORD_WORDS]]
        size += 6 + len(name)
    text: object = bytearray(size)
    out: cython.uchar[::1] = text
    for i in range(first, stop):
        put(out, at, words[i * RECORD_WORDS], 4)
        at = put_name(out, at + 4, names[words[i * RECORD_WORDS]])
    return bytes(text)


def offsets_and_names(offsets: object, names: list, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> bytes:
    """Next offset and name of the topics first..stop, packed."""
    following: cython.const[cython.ulonglong][::1] = memoryview(offsets)
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 0
    name: bytes
    for i in range(first, stop):
        name = names[i]
        size += 10 + len(name)
    text: object = bytearray(size)
    out: cython.uchar[::1] = text
    for i in range(first, stop):
        put(out, at, following[i], 8)
        at = put_name(out, at + 8, names[i])
    return bytes(text)
