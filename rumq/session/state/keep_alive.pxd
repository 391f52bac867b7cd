from rumq.session.state.deadlines cimport Deadlines


cdef class KeepAliveMonitor:
    cdef public double next_check
    cdef public Deadlines _deadlines
