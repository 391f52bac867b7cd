import cython


cdef class FreeSpaceProbe:
    cdef public bint _is_measuring
    cdef public double _began_at, _due_at
    cdef public long long _began_bytes, _due_bytes
    cdef public object _admission, _clock, _pool, _store, _written, latest

    @cython.locals(now=double, written_bytes=longlong)
    cpdef end_turn(self)
