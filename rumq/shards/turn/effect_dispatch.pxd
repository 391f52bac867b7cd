from router.effects cimport Deliver
from rumq.shards.delivery.fan_out cimport FanOut


cdef class EffectDispatch:
    cdef public dict _handlers
    cdef public FanOut _fan_out

    cpdef carry_out(self, effect)
