
cdef class FreeSpaceProbe:
    cdef public double _began_at, _due_at
    cdef public long long _began_bytes, _due_bytes
    cdef public object _admission, _clock, _pool, _store, _written, latest

    cpdef bint is_due(self, double now, long long written_bytes) except -1
