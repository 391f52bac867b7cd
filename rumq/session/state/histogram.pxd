# The fields of a histogram, observed at C speed.
import cython

cdef long BUCKETS


cdef class Histogram:
    cdef public list counts
    cdef public double seconds

    @cython.locals(at=long, left=long)
    cpdef observe(self, double seconds, long weight=*)
