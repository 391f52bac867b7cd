from rumq.session.state.deadlines cimport DeadlineWheel


cdef class KeepAliveMonitor:
    cdef public double next_check
    cdef public DeadlineWheel _deadlines

    cpdef add(self, link, double deadline)
    cpdef cancel(self, link)
