import cython

from commitlog.chunk cimport Chunk
from router.matching.routes cimport RouteTable

cdef unsigned int FLAG_QOS


cdef class Feed:
    cdef public Py_ssize_t index
    cdef public long long committed_lsn, visible_lsn
    cdef public dict waiters
    cdef public list _deferred_from, ahead, pending
    cdef public tuple deferred
    cdef public RouteTable routes
    cdef public object _runs, partition

    cpdef bint appended(self, Chunk chunk) except -1
    @cython.locals(chunk=Chunk, live=list, safe=list)
    cpdef tuple committed(self, long long lsn)
    @cython.locals(chunk=Chunk, count=Py_ssize_t, pending=list)
    cpdef list take_pending(self, long long lsn)
