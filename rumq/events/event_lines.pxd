# An event is told on the way of each connect.
import cython

from rumq.events.event_ring cimport EventRing

cdef Stamp _stamp


cdef class Stamp:
    cdef public long long _second
    cdef public str _text

    @cython.locals(second=longlong, milliseconds=int)
    cpdef str text(self, long long time_us)


cpdef dict stamped(long long time_us, level, name, floor, dict fields)
cpdef shorten(dict event)
cpdef bytes kept(long long time_us, dict event)
@cython.locals(event=dict)
cpdef bytes line_of(level, name, floor, dict fields)
