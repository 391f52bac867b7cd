
cdef class Backpressure:
    cdef public list _parts, _slowed
    cdef public object _acks, _commit, _events, _uncommitted, behind, crowded, pending_bytes_max
