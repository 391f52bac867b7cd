import cython

from rumq.mqtt.kernels.wire_state cimport Wire
from rumq.session.flow_control.delivery_window cimport DeliveryWindow
from rumq.session.journal.recorder cimport JournalRecorder
from rumq.session.ports.clock cimport TurnClock
from rumq.session.ports.transport cimport Outbox
from rumq.session.state.histogram cimport Histogram

cdef double AWAITED_SECONDS


cdef class AckPort:
    cpdef promise(self, PendingAcks client, unsigned long long parts=*)


cdef class PendingAcks:
    cdef public bint raised
    cdef public Py_ssize_t barriers
    cdef public Wire wire
    cdef public Outbox transport
    cdef public DeliveryWindow flow
    cdef public list holds
    cdef public AckPort _port
    cdef public object _deliveries, _journal, session, traces

    cpdef promise_log(self)


cdef class PendingAck:
    cdef public bint barrier
    cdef public Py_ssize_t parts, pubacks
    cdef public double began
    cdef public PendingAcks client
    cdef public object acks, traces


@cython.locals(made=PendingAck)
cdef PendingAck hold(
    PendingAcks client, object acks, Py_ssize_t pubacks, Py_ssize_t parts, bint barrier, double began
)


cdef class PartWaits:
    cdef public list acks, lsns
    cdef public double awaited_at
    cdef public long long last
    cdef public object source

    @cython.locals(lsn=longlong)
    cpdef put(self, PendingAck pending)
    cpdef bint is_committed(self) except -1
    @cython.locals(committed=longlong, count=Py_ssize_t)
    cpdef Py_ssize_t ready(self) except -1
    cpdef drop(self, Py_ssize_t count)


cdef class AckTracker(AckPort):
    cdef public list _messages, _parts, promised, urgent
    cdef public Py_ssize_t _journal_index
    cdef public TurnClock _clock
    cdef public object _flush_journal
    cdef public JournalRecorder _recorder
    cdef public Histogram waits

    cpdef promise(self, PendingAcks client, unsigned long long parts=*)
    @cython.locals(client=PendingAcks, waits=PartWaits)
    cpdef bint end_step(self) except -1
    @cython.locals(
        wire=Wire, parts=ulonglong, left=ulonglong, count=Py_ssize_t, now=double, pending=PendingAck, index=Py_ssize_t,
        waits=PartWaits,
    )
    cpdef _wait(self, PendingAcks client)
    @cython.locals(pending=PendingAck, waits=PartWaits, count=Py_ssize_t, at=Py_ssize_t)
    cpdef release(self, Py_ssize_t index)


@cython.locals(ready=PendingAck)
cpdef send_ready(PendingAcks client)
