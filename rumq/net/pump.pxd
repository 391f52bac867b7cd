# The fields of the pump, and what a turn calls of it.
import cython

from rumq.net.connection cimport Connection


cdef class Pump:
    cdef object _turns, _epoll, _view
    cdef double _coalesce_seconds, _last_turn, _streak_began
    cdef list _last_fds
    cdef bint _crowd, _is_quiet
    cdef dict _others, _again
    cdef bytearray _buffer
    cdef public dict connections
    cdef public object pending_logins, lingering
    cdef public Py_ssize_t turns
    cdef public long long bytes_in, bytes_out
    cdef public list dirty

    @cython.locals(connection=Connection, fd=int, mask=int)
    cpdef turn(self, double timeout)
    cpdef _read(self, Connection connection)
    cpdef _receive(self, Connection connection, object unparsed, Py_ssize_t kept, bint inline, Py_ssize_t n)
    cpdef _remember(self, list events)
