import cython


cdef Py_ssize_t TELLING_BYTES
cdef double SPARE_SECONDS, SLOWING


cdef class BulkAllowance:
    cdef public long long bytes, shared_bytes
    cdef public double _shortest, rest_seconds, rests_until

    @cython.locals(shortest=double, wanted=double, shared=double)
    cpdef note(self, long long size, double seconds, double now)
