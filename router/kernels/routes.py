"""Kernel: look at the topics of a chunk's rows all at once. docs/reference/log-format.md, "Row".

Rows and number tables in, numbers out. Knows no subscriber.
"""

import cython

if cython.compiled:
    from cython.cimports.commitlog.kernels.buffers import words as words_at
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy


def unrouted(
    rows: object, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, routes: object, least: cython.uint
) -> list[int]:
    """The topic ids of rows first..stop that have no route of `least` or more (or are past the end of `routes`)."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    route_of: cython.const[cython.uint][::1] = routes
    known: cython.Py_ssize_t = len(route_of)
    topic: cython.uint
    last: cython.longlong = -1
    i: cython.Py_ssize_t
    found: list = []
    for i in range(first, stop):
        topic = words[i * 8]
        if topic != last:
            last = topic
            if topic >= known or route_of[topic] < least:
                found.append(topic)
    return found


def first_unrouted(
    rows: object, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, routes: object, least: cython.uint
) -> int:
    """The first of rows first..stop whose topic has no route of `least` or more; `stop` when all have."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    route_of: cython.const[cython.uint][::1] = routes
    known: cython.Py_ssize_t = len(route_of)
    i: cython.Py_ssize_t
    for i in range(first, stop):
        if words[i * 8] >= known or route_of[words[i * 8]] < least:
            return i
    return stop


def route_in(rows: object, routes: object, least: cython.uint) -> int:
    """The route of the first row; 0 if its topic has none of `least` or more."""
    words: cython.p_uint
    route_of: cython.p_uint
    if cython.compiled:
        words, route_of = words_at(rows), words_at(routes)
    else:
        words, route_of = memoryview(rows).cast("I"), routes
    known: cython.Py_ssize_t = len(routes)
    if words[0] >= known or route_of[words[0]] < least:
        return 0
    return route_of[words[0]]


def routes_in(
    rows: object, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, routes: object, least: cython.uint
) -> "tuple[list[int], memoryview | None]":
    """The distinct routes of rows first..stop in order of appearance, and row -> which of them.

    The second is None when there is only one. ([], None) as soon as a topic has no route of `least` or more."""
    words: cython.p_uint
    route_of: cython.p_uint
    places: cython.p_uint
    if cython.compiled:
        words, route_of = words_at(rows), words_at(routes)
    else:
        words, route_of = memoryview(rows).cast("I"), routes
    known: cython.Py_ssize_t = len(routes)
    i: cython.Py_ssize_t
    other: cython.Py_ssize_t = stop
    route: cython.uint
    last: cython.uint
    place: cython.uint = 0
    if first >= stop or words[first * 8] >= known:
        return [], None
    last = route_of[words[first * 8]]
    if last < least:
        return [], None
    found: list = [last]
    for i in range(first + 1, stop):
        if words[i * 8] >= known:
            return [], None
        route = route_of[words[i * 8]]
        if route < least:
            return [], None
        if route != last:
            other = i
            break
    if other == stop:
        return found, None
    out: object = bytearray(4 * stop)
    if cython.compiled:
        places = words_at(out)
    else:
        places = memoryview(out).cast("I")
    place_of: dict = {last: 0}
    known_place: object
    for i in range(other, stop):
        if words[i * 8] >= known:
            return [], None
        route = route_of[words[i * 8]]
        if route != last:
            if route < least:
                return [], None
            last = route
            known_place = place_of.get(route)
            if known_place is None:
                place = len(found)
                place_of[route] = place
                found.append(route)
            else:
                place = known_place
        places[i] = place
    return found, memoryview(out).cast("I")


def by_place(
    first: cython.Py_ssize_t, stop: cython.Py_ssize_t, places: object, count: cython.Py_ssize_t
) -> "tuple[memoryview, list[int]]":
    """The numbers of rows first..stop sorted by their places, each place's in ascending order; and where the rows of
    each of the `count` places begin among them, with the end behind the last."""
    sorted_rows: object = bytearray(4 * (stop - first))
    ends: object = bytearray(4 * (count + 1))
    place_of: cython.p_uint
    out: cython.p_uint
    at: cython.p_uint
    if cython.compiled:
        place_of, out, at = words_at(places), words_at(sorted_rows), words_at(ends)
    else:
        place_of = places
        out, at = memoryview(sorted_rows).cast("I"), memoryview(ends).cast("I")
    i: cython.Py_ssize_t
    place: cython.uint
    for i in range(first, stop):
        at[place_of[i]] += 1
    for i in range(1, count + 1):
        at[i] += at[i - 1]
    # From the end down, each place's end becomes its beginning.
    for i in range(stop - 1, first - 1, -1):
        place = place_of[i]
        at[place] -= 1
        out[at[place]] = i
    begins: list = []
    for i in range(count + 1):
        begins.append(at[i])
    return memoryview(sorted_rows).cast("I"), begins


def rows_wanted(first: cython.Py_ssize_t, stop: cython.Py_ssize_t, places: object, wanted: object) -> list[int]:
    """The numbers of the rows first..stop that are wanted: row -> places[row] -> wanted[place], 0 is "not"."""
    place_of: cython.const[cython.uint][::1] = places
    form_of: cython.const[cython.uint][::1] = wanted
    i: cython.Py_ssize_t
    found: list = []
    for i in range(first, stop):
        if form_of[place_of[i]]:
            found.append(i)
    return found


def tally(
    rows: object,
    frames_len: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    places: object,
    chosen: object,
    topics_max: cython.Py_ssize_t,
) -> tuple[dict[int, int], int]:
    """How many of the rows first..stop each topic has, of at most `topics_max` topics; and how many others have.

    chosen: of each place whether its rows count (`places` None: all do). Rows whose frames were left out do not count.
    """
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    total: cython.Py_ssize_t = len(words) // 8
    place_of: cython.const[cython.uint][::1]
    counts: cython.const[cython.uint][::1]
    if places is not None:
        place_of = places
        counts = chosen
    found: dict = {}
    rest: cython.Py_ssize_t = 0
    run: cython.Py_ssize_t = 0
    topic: cython.uint = 0
    end: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(first, stop + 1):
        if i < stop:
            if places is not None and not counts[place_of[i]]:
                continue
            end = words[i * 8 + 9] if i + 1 < total else frames_len
            if end == words[i * 8 + 1]:
                continue
            if run and words[i * 8] == topic:
                run += 1
                continue
        if run:
            known = found.get(topic)
            if known is not None:
                found[topic] = known + run
            elif len(found) < topics_max:
                found[topic] = run
            else:
                rest += run
        if i < stop:
            topic = words[i * 8]
            run = 1
    return found, rest


def only_wanted(
    rows: object,
    frames: object,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    places: object,
    wanted: object,
    views_max: cython.Py_ssize_t,
) -> "tuple[bytearray, list[bytes | memoryview]]":
    """Rows first..stop of a chunk, and of their frames those that are wanted, in pieces: the others are empty.

    views_max: up to so many pieces they are the chunk's own bytes, else one copy"""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    src: cython.const[cython.uchar][::1] = memoryview(frames).cast("B")
    place_of: cython.const[cython.uint][::1] = places
    form_of: cython.const[cython.uint][::1] = wanted
    total: cython.Py_ssize_t = len(words) // 8
    taken: object = bytearray(memoryview(rows)[32 * first : 32 * stop])
    row: cython.uint[::1] = memoryview(taken).cast("I")
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    runs: cython.Py_ssize_t = 0
    run_at: cython.Py_ssize_t = -1  # where a run of wanted frames begins; -1: not in one
    for i in range(first, stop):
        row[(i - first) * 8 + 1] = at
        if not form_of[place_of[i]]:
            run_at = -1
            continue
        if run_at < 0:
            run_at = 0
            runs += 1
        at += (words[i * 8 + 9] if i + 1 < total else len(src)) - words[i * 8 + 1]
    row = None
    pieces: list = []
    is_one: cython.bint = runs > views_max
    if is_one:
        if cython.compiled:
            data: bytes = PyBytes_FromStringAndSize(cython.NULL, at)
            out: cython.p_char = PyBytes_AS_STRING(data)
        at = 0
    run_at = -1
    for i in range(first, stop + 1):
        if i < stop and form_of[place_of[i]]:
            if run_at < 0:
                run_at = words[i * 8 + 1]
        elif run_at >= 0:
            end: cython.Py_ssize_t = words[i * 8 + 1] if i < total else len(src)
            if is_one and cython.compiled:
                memcpy(out + at, cython.address(src[run_at]), end - run_at)
                at += end - run_at
            else:
                pieces.append(memoryview(frames)[run_at:end])
            run_at = -1
    if is_one:
        pieces = [data] if cython.compiled else [b"".join(pieces)]
    return taken, pieces


def last_retained(rows: object, count: cython.Py_ssize_t) -> dict[int, int]:
    """Topic id -> the last row of that topic that was published with RETAIN."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    i: cython.Py_ssize_t
    found: dict = {}
    for i in range(count):
        if words[i * 8 + 7] & 4:
            found[words[i * 8]] = i
    return found


def renumber(rows: object, pieces: list) -> bytearray:
    """Rows for frames that were put side by side: pieces = [(row bytes, frame length)], in order."""
    out: object = bytearray(32 * len(pieces))
    words: cython.uint[::1] = memoryview(out).cast("I")
    i: cython.Py_ssize_t = 0
    at: cython.uint = 0
    for row, length in pieces:
        out[i * 32 : i * 32 + 32] = row
        words[i * 8 + 1] = at
        at += length
        i += 1
    return out


def latest(rows: object, row: cython.Py_ssize_t) -> tuple[int, int, int]:
    """(topic offset, ts delta, flags) of a row."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    at: cython.Py_ssize_t = row * 8
    return (
        words[at + 2] | (cython.cast(cython.ulonglong, words[at + 3]) << 32),
        words[at + 4],
        words[at + 7] & 0xFFFF,
    )


def frame_bounds(rows: object, row: cython.Py_ssize_t, frames_len: cython.Py_ssize_t) -> tuple[int, int]:
    """Where the frame of a row starts and ends."""
    words: cython.const[cython.uint][::1] = memoryview(rows).cast("I")
    start: cython.Py_ssize_t = words[row * 8 + 1]
    if (row + 1) * 8 + 1 < len(words):
        return start, words[(row + 1) * 8 + 1]
    return start, frames_len
