cdef class BackpressureBits:
    cdef public unsigned long long behind, bulk, crowded, modest
