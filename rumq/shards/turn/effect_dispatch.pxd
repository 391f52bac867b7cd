cdef class EffectDispatch:
    cdef public dict _handlers

    cpdef carry_out(self, effect)
