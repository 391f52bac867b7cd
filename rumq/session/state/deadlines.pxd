cdef class Deadline:
    cdef public double at
    cdef public long long number
    cdef public object item
