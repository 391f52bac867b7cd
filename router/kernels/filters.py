"""Kernel: which of many topic names one filter matches. MQTT 5.0, 4.7.

Names come sorted by their bytes; the result is their indexes. Knows no subscriber.
"""

import cython


def matching(names: list, topic_filter: bytes, prefix: bytes) -> tuple[list[int], bool]:
    """The places in `names` of those that begin with `prefix` and that the filter matches, and whether a name does not
    begin with it: then nor does any after it."""
    found: list = []
    name: bytes
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    same: cython.Py_ssize_t = len(prefix)
    size: cython.Py_ssize_t
    wanted: cython.p_char = prefix
    for i in range(len(names)):
        name = names[i]
        size = len(name)
        text: cython.p_char = name
        if size < same:
            return found, True
        for j in range(same):
            if text[j] != wanted[j]:
                return found, True
        if matches(topic_filter, name):
            found.append(i)
    return found, False


@cython.ccall
def matches(topic_filter: bytes, name: bytes) -> cython.bint:
    """Whether a checked filter matches a topic name; a `$` topic needs its first level said (4.7.2)."""
    f: cython.p_char = topic_filter
    n: cython.p_char = name
    f_end: cython.Py_ssize_t = len(topic_filter)
    n_end: cython.Py_ssize_t = len(name)
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    if n_end and n[0] == 36 and f_end and (f[0] == 35 or f[0] == 43):  # $, # and +
        return False
    while True:
        # A level begins at i and j.
        if i < f_end and f[i] == 35:
            return True
        if i < f_end and f[i] == 43:
            i += 1
            while j < n_end and n[j] != 47:
                j += 1
        else:
            while i < f_end and j < n_end and f[i] == n[j] and f[i] != 47:
                i += 1
                j += 1
        if i == f_end or j == n_end:
            # "a/#" also matches its parent level "a" (4.7.1.2).
            return j == n_end and (i == f_end or (i + 2 == f_end and f[i] == 47 and f[i + 1] == 35))
        if f[i] != 47 or n[j] != 47:
            return False
        i += 1
        j += 1
