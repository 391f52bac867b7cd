# What the loop calls in each turn.
from rumq.net.pump cimport Pump
from rumq.net.turn_handler cimport TurnHandler


cdef class Loop:
    cdef public Pump _pump
    cdef public TurnHandler _turns
    cdef public object _calls, _fd
