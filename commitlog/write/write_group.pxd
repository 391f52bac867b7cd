from commitlog.write.segment_writer cimport Flush, SegmentWriter


cdef class WriteGroup:
    cdef public bint _roll, preallocates, wants_room
    cdef public SegmentWriter _writer
    cdef public list _pieces, chunks, news
    cdef public Py_ssize_t _next, bytes
    cdef public long long _position, durable_lsn, end_lsn, mark_us, safe_lsn
    cdef public object _failed, fault, offline

    cpdef bint is_small(self)
    cpdef begin(self)
    cpdef end(self)
    cpdef _write(self)
