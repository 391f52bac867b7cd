# The fields of a connection, for the pump at C speed.
import cython

from rumq.net.kernels cimport sockets
from rumq.net.kernels.addresses cimport packed, unpacked
from rumq.session.ports.transport cimport Transport

cdef Py_ssize_t BUFFERS_MAX


cdef class ConnectionOwner:
    cdef public list dirty


cdef class Extras:
    cdef public object peer, sock, tap, write_failed


cdef class Connection(Transport):
    cdef public unsigned char blocked, closing, dirty, ended, is_bulk, is_plain, lingers, reading, reading_paused
    cdef public unsigned short _port
    cdef public int fd, outbox_bytes_max
    cdef public unsigned int _ipv4
    cdef public Py_ssize_t bytes_in, bytes_out
    cdef public ConnectionOwner pump
    cdef public object queue, unparsed
    cdef public Extras extras

    cpdef Extras own_extras(self)
    @cython.locals(extras=Extras)
    cpdef write(self, object data, object owner=*)
    cpdef empty(self)
    cpdef flush(self)
    @cython.locals(sent=Py_ssize_t, waiting=Py_ssize_t, pieces=list)
    cpdef _send(self, object queue)
