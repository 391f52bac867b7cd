cdef class BackpressureBits:
    cdef public unsigned long long behind, crowded, modest
