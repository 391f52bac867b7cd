import cython


cdef Py_ssize_t TELLING_BYTES
cdef double SPARE_SECONDS, SLOWING


cdef class BulkAllowance:
    cdef public long long bytes
    cdef public double _shortest

    @cython.locals(shortest=double, wanted=double)
    cpdef note(self, long long size, double seconds)
