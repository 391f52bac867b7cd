cdef class MovedGroups:
    cdef dict _moved
    cdef public dict maybe_behind

    cpdef mark(self, object share)
