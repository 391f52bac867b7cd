
cdef class FreeSpaceProbe:
    cdef public bint _is_measuring
    cdef public object _admission, _clock, _next, _pool, _store, _written, _written_before, latest
