import cython

from rumq.mqtt.kernels.wire_state cimport Wire
from rumq.session.flow_control.delivery_window cimport DeliveryWindow
from rumq.session.ports.transport cimport Outbox
from rumq.session.state.histogram cimport Histogram


cdef class PendingAcks:
    cdef public bint raised
    cdef public Py_ssize_t barriers
    cdef public Wire wire
    cdef public Outbox transport
    cdef public DeliveryWindow flow
    cdef public object _broker, _deliveries, holds, session, traces


cdef class PendingAck:
    cdef public bint barrier
    cdef public Py_ssize_t parts, pubacks
    cdef public double began
    cdef public PendingAcks client
    cdef public object acks, traces


cdef class AckTracker:
    cdef public list _awaited, _messages, _sources, _waiting, promised, urgent
    cdef public Py_ssize_t _journal_index
    cdef public object _clock, _flush_journal
    cdef public Histogram waits

    cpdef promise(self, PendingAcks client, unsigned long long parts=*)
    @cython.locals(client=PendingAcks)
    cpdef bint end_step(self)
    @cython.locals(
        wire=Wire, parts=ulonglong, left=ulonglong, count=Py_ssize_t, now=double, pending=PendingAck, index=Py_ssize_t
    )
    cpdef _wait(self, PendingAcks client)
    @cython.locals(pending=PendingAck)
    cpdef release(self, Py_ssize_t index)


@cython.locals(ready=PendingAck)
cpdef send_ready(PendingAcks client)
