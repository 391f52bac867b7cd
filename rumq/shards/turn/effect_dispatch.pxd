
cdef class EffectDispatch:
    cdef public dict _handlers
