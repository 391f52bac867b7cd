cdef class HeldNumbers:
    cdef public dict _counts
    cdef public list released
