
cdef class Chunk:
    cdef public object sources, tags
    cdef public dict blobs, publishers
    cdef public unsigned long long base_lsn, next_lsn
    cdef public long long base_ts
    cdef public Py_ssize_t count
    cdef public unsigned int flags
    cdef public object frames, rows, routes, traces
