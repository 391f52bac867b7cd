
cdef class Reader:
    cdef public bint closed
    cdef public dict denied_below, skipped
    cdef public list cursors, redelivered_below
    cdef public object group, key, number, refused, share, sink, start, turns, waiting
    cdef public set counted

cdef class Group:
    cdef public bint private
    cdef public dict _by_filter, _numbers
    cdef public list forms, live
    cdef public object cache, count, wants
