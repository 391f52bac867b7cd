cdef class Chunk:
    cdef public object sources, tags
    cdef public dict blobs, publishers
    cdef public unsigned long long base_lsn, next_lsn
    cdef public long long base_ts
    cdef public Py_ssize_t count
    cdef public unsigned int flags
    cdef public object frames, rows, routes, traces

    cpdef set(
        self, unsigned long long base_lsn, Py_ssize_t count, long long base_ts, unsigned int flags, object rows,
        object frames, object tags, object sources,
    )
