cdef class ChunkPosition:
    cdef public unsigned long long base_lsn, base_ts, position
    cdef public unsigned int count, flags, late, total_len

    cpdef set(
        self, unsigned long long base_lsn, unsigned long long position, unsigned long long base_ts, unsigned int count,
        unsigned int total_len, unsigned int flags, unsigned int late,
    )
