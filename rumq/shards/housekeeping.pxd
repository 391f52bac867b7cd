from rumq.loop.scheduler cimport ShardClock, TimerQueue
from rumq.loop.stage cimport Stage
from rumq.session.state.deadlines cimport Deadlines
from rumq.session.state.keep_alive cimport KeepAliveMonitor


cdef class Housekeeping(Stage):
    cdef public ShardClock _clock
    cdef public TimerQueue _timers
    cdef public KeepAliveMonitor _keep_alive
    cdef public Deadlines _expiry
    cdef public double _next_tidy
    cdef public Py_ssize_t _connections_before
    cdef public object _broker, _events, _registry, _removal, _step

    cpdef end_turn(self)
    cpdef double next_deadline(self) except? -1
