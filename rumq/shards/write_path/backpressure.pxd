import cython

from commitlog.log.partition cimport Partition


cdef class WatchedPart:
    cdef public Py_ssize_t index
    cdef public Partition partition
    cdef public object feed, source

    @cython.locals(unwritten=longlong)
    cpdef long long pending(self) except -1


cdef class Backpressure:
    cdef public list _parts, _slowed
    cdef public long long pending_bytes_max
    cdef public object _acks, _commit, _events, _uncommitted, behind, crowded

    @cython.locals(part=WatchedPart, pending=longlong)
    cpdef end_turn(self)
    cpdef end_second_step(self)
