cdef class DiskSpace:
    cdef public long long log_bytes, _removed_bytes
    cdef public double _next_count
    cdef public object _bounds, _clock, _near_since, _peers, _probe, _rate, _remover, _store, settings, space, told

    cpdef look(self)
