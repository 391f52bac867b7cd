
cdef class Group
cdef class Reader

cdef class LiveReaders:
    cdef dict _readers
    cdef object _only
    cdef list _listed

    cpdef bint has(self, Reader reader) except -1
    cpdef list listed(self)

cdef class Reader:
    cdef public bint closed
    cdef public dict denied_below, skipped
    cdef public list cursors, redelivered_below
    cdef public Group group
    cdef public object key, number, refused, share, sink, start, turns, waiting
    cdef public set counted

cdef class Group:
    cdef public bint private, committed_only, is_shard
    cdef public dict _by_filter, _numbers
    cdef public tuple _only
    cdef public list forms, live
    cdef public Py_ssize_t count
    cdef public object cache, shape, wants
