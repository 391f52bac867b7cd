from commitlog.chunk cimport Chunk


cdef class Feed:
    cdef public Py_ssize_t index
    cdef public long long committed_lsn, visible_lsn
    cdef public dict waiters
    cdef public list _deferred_from, ahead
    cdef public tuple deferred
    cdef public object _runs, partition, pending, routes

    cpdef list appended(self, Chunk chunk)
