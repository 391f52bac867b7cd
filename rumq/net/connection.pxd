# The fields of a connection, for the pump at C speed.
import cython

from rumq.net.kernels cimport sockets
from rumq.session.ports.transport cimport Transport

cdef Py_ssize_t BUFFERS_MAX


cdef class ConnectionOwner:
    cdef public list dirty


cdef class Connection(Transport):
    cdef public unsigned char blocked, closing, dirty, ended, is_bulk, is_plain, lingers, reading, reading_paused
    cdef public int fd
    cdef public Py_ssize_t bytes_in, bytes_out, outbox_bytes_max
    cdef public ConnectionOwner pump
    cdef public object _sock, queue, tap, unparsed, write_failed

    cpdef write(self, object data, object owner=*)
    cpdef empty(self)
    cpdef flush(self)
    @cython.locals(sent=Py_ssize_t, waiting=Py_ssize_t, pieces=list)
    cpdef _send(self, object queue)
