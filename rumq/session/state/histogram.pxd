# The fields of a histogram, observed at C speed.
import cython

cdef long BUCKETS


cdef class Histogram:
    cdef long long[::1] _counts
    cdef public double seconds

    @cython.locals(at=cython.Py_ssize_t, bound=double, most=cython.Py_ssize_t)
    cpdef observe(self, double seconds, long weight=*)
