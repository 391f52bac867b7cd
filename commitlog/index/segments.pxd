from commitlog.format.chunk_position cimport ChunkPosition


cdef class SegmentFile:
    cdef public long long allocated, base_lsn, first_ts, logical_end
    cdef public Py_ssize_t tried_at
    cdef public bint index_sound, indexed, is_packed, sealed
    cdef public object draft, end_lsn, path, salt
    cdef public list places

    cpdef take(self, ChunkPosition place)


cdef class SegmentList:
    cdef public list files, jumps
    cdef public long long first_lsn
    cdef public bint removing, replacing
    cdef public object cache, dictionary

    cpdef SegmentFile last(self)
