import cython

from rumq.loop.kernels cimport system_clock
from rumq.session.ports.clock cimport TurnClock


cdef class ShardClock(TurnClock):
    cdef public object _read

    cpdef tick(self)


cdef class TimerQueue:
    cdef public list _after_step, _later, _next_turn
    cdef public long long _count
    cdef public ShardClock _clock

    cpdef double next_deadline(self) except? -1
    cpdef bint waits(self)
    cpdef run_next_turn(self, guard)
    @cython.locals(left=int)
    cpdef run_due(self, guard)
    cpdef run_after_step(self, guard)


cdef class Lifecycle:
    cdef public bint is_restored
    cdef public int stop_phase
