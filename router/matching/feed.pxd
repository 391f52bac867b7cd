from commitlog.chunk cimport Chunk
from router.matching.routes cimport RouteTable


cdef class Feed:
    cdef public Py_ssize_t index
    cdef public long long committed_lsn, visible_lsn
    cdef public dict waiters
    cdef public list _deferred_from, ahead
    cdef public tuple deferred
    cdef public RouteTable routes
    cdef public object _runs, partition, pending

    cpdef list appended(self, Chunk chunk)
