# An event is told on the way of each connect.
import cython


cdef class EventRing:
    cdef public long long run, next
    cdef public Py_ssize_t _events_max, _bytes_max, _bytes
    cdef public object _lines, _lock, _names, _stamps

    @cython.locals(count=Py_ssize_t)
    cpdef add(self, long long time_us, level, event, bytes line)
