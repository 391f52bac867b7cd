from rumq.mqtt.kernels.ingest cimport cut
from rumq.mqtt.kernels.wire_state cimport Wire
from rumq.session.connection.client_state cimport Client
from rumq.session.connection.pending_acks cimport PendingAcks
from rumq.session.ports.transport cimport Receiver, Transport
from rumq.session.ports.turn_view cimport TurnView
from rumq.session.flow_control.delivery_window cimport DeliveryWindow
from rumq.session.protocol.deliveries cimport Deliveries

import cython

cdef int MORE, PINGREQ, MODEST_BYTES, MODEST_READS


cdef class Connected(Receiver):
    cdef public unsigned char bulk_reads, held, is_active, is_metered, paused
    cdef public int due_place, window_limit
    cdef public double due_at, heard_at
    cdef public long long bytes_in, bytes_out
    cdef public Client client
    cdef public Wire wire
    cdef public PendingAcks acks
    cdef public DeliveryWindow flow
    cdef public Deliveries deliveries
    cdef public Transport transport
    cdef public TurnView _turn
    cdef public tuple buckets
    cdef public object broker, reauthentication, session

    cdef bint _answer_ping(self, int length) except -1
    @cython.locals(wire=Wire)
    cpdef _take_acknowledged(self)
    cpdef Py_ssize_t receive(self, object data, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(
        client=Client, wire=Wire, began=Py_ssize_t, cold=Py_ssize_t, stop=int, after=Py_ssize_t, is_plain=bint,
        published=ulonglong, answers=ulonglong,
    )
    cpdef Py_ssize_t _packets(self, object data, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(wire=Wire, bulk=bint)
    cpdef _answer(self, Py_ssize_t taken)
    @cython.locals(wire=Wire)
    cdef _note_packet_ids(self)
