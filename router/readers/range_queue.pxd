cdef class RangeQueue:
    cdef object _held, _ranges_max
