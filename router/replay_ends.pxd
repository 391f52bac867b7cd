cdef class ReplayEnds:
    cdef public dict _ends
    cdef public list _feeds
    cdef public object _delivery
    cdef public set _passed

    cpdef bint are_expected(self) except -1
