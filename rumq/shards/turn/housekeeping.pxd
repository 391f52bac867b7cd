
cdef class Housekeeping:
    cdef public object _broker, _clock, _connections_before, _disk, _events, _keep_alive, _next_tidy
    cdef public object _registry, _removal, _step, _timers
