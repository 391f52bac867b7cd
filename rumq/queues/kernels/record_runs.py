"""Kernel: the records of a chunk as runs: of one topic and publisher, one behind the other, with numbers in a row.

docs/reference/log-format.md, "Chunk"."""

import cython

ROW_WORDS = cython.declare(cython.Py_ssize_t, 8)


def runs_of(rows: object) -> list:
    """(topic id, publisher, first number in the topic, one behind the last, where the first one's frame begins)

    rows: 32 bytes each"""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("B").cast("I")
    count: cython.Py_ssize_t = len(words) // ROW_WORDS
    found: list = []
    i: cython.Py_ssize_t
    w: cython.Py_ssize_t
    topic: cython.uint = 0
    publisher: cython.uint = 0
    first: cython.ulonglong = 0
    stop: cython.ulonglong = 0
    number: cython.ulonglong
    start: cython.uint = 0
    for i in range(count):
        w = i * ROW_WORDS
        number = words[w + 2] | (cython.cast(cython.ulonglong, words[w + 3]) << 32)
        if i and words[w] == topic and words[w + 6] == publisher and number == stop:
            stop += 1
            continue
        if i:
            found.append((topic, publisher, first, stop, start))
        topic = words[w]
        publisher = words[w + 6]
        start = words[w + 1]
        first = number
        stop = number + 1
    if count:
        found.append((topic, publisher, first, stop, start))
    return found
