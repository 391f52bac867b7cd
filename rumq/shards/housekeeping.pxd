from rumq.loop.scheduler cimport ShardClock, TimerQueue


cdef class Housekeeping:
    cdef public ShardClock _clock
    cdef public TimerQueue _timers
    cdef public double _next_tidy
    cdef public Py_ssize_t _connections_before
    cdef public object _broker, _events, _keep_alive, _registry, _removal, _step
