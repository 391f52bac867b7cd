from rumq.session.state.histogram cimport Histogram


cdef class PendingAcks:
    cdef public bint raised
    cdef public object _broker, _deliveries, barriers, flow, holds, session, traces, transport, wire

cdef class PendingAck:
    cdef public bint barrier
    cdef public Py_ssize_t parts, pubacks
    cdef public double began
    cdef public object acks, client, traces

cdef class AckTracker:
    cdef public list _awaited, _messages, _sources, _waiting, promised, urgent
    cdef public Py_ssize_t _journal_index
    cdef public object _clock, _flush_journal
    cdef public Histogram waits

    cpdef bint end_step(self)
    cpdef _wait(self, object client)
    cpdef release(self, Py_ssize_t index)

cpdef send_ready(object client)
