# Typed fields, and what each message meets.
import cython


cdef class ChannelTimer:
    cdef public double at
    cdef public dict entries
    cdef public Py_ssize_t size


cdef class ChannelEntry:
    cdef public object id, message, token, stage
    cdef public double expires_at
    cdef public Py_ssize_t failed, size
    cdef public ChannelTimer timer
    cdef public ChannelHolder consumer


cdef class ChannelHolder:
    cdef public Py_ssize_t credit
    cdef public dict held


cdef class ChannelState:
    cdef public object counts, _settings, _known_tries, _ready, _effects
    cdef public dict holders, _entries, _lines
    cdef public list _timers
    cdef public Py_ssize_t _sequence, _timed, size
    cdef public set _recent, _older
    cdef public bint _is_ordered

    @cython.locals(known=ChannelEntry, entry=ChannelEntry)
    cpdef bint _arrived(self, message, token, double expires_at, bint may_have_failed) except -1
    @cython.locals(entry=ChannelEntry, entries=dict, taken=list, held=dict, room=Py_ssize_t)
    cpdef list take(self, ChannelHolder holder, Py_ssize_t messages_max, double now, long long bytes_max=*)
    @cython.locals(entry=ChannelEntry, strangers=list, held=dict, done=Py_ssize_t)
    cpdef list acknowledge(self, ChannelHolder holder, ids, double now)
    @cython.locals(entry=ChannelEntry)
    cpdef bint advance(self, double now) except -1
    cpdef bint _is_spent(self, ChannelEntry entry) except -1
    @cython.locals(entry=ChannelEntry, timer=ChannelTimer)
    cpdef _wait(self, dict entries, double until)
    @cython.locals(timer=ChannelTimer, entries=dict)
    cpdef _unwait(self, ChannelEntry entry)
    @cython.locals(following=ChannelEntry)
    cpdef _finish(self, ChannelEntry entry)
