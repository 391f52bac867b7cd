from rumq.session.ports.backpressure cimport BackpressureBits
from rumq.session.ports.clock cimport TurnClock


cdef class TurnView:
    cdef public TurnClock clock
    cdef public BackpressureBits backpressure
    cdef public list batches
