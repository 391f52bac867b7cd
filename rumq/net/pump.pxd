# The fields of the pump, and what a turn calls of it.
import cython

from rumq.net.connection cimport Connection, ConnectionOwner, Extras
from rumq.net.kernels cimport sockets
from rumq.net.kernels.epoll cimport EpollSet
from rumq.net.turn_handler cimport TurnHandler
from rumq.session.ports.transport cimport Receiver

cdef unsigned int ENDED, READABLE, WRITABLE
cdef Py_ssize_t BULK_BYTES, CROWD, PIECE_BYTES, STREAK_EVENTS, UNPARSED_INLINE_MAX
cdef double SHARED_SECONDS, STREAK_SECONDS, STREAK_SPAN_SECONDS


cdef class Pump(ConnectionOwner):
    cdef TurnHandler _turns
    cdef object _view
    cdef EpollSet _epoll
    cdef double _began, _coalesce_seconds, _last_turn, _shared_until, _streak_began
    cdef Py_ssize_t _piece
    cdef list _by_fd, _last_fds
    cdef bint _crowd, _is_quiet
    cdef int _last_count
    cdef dict _others, _again
    cdef bytearray _buffer
    cdef public object connections, pending_logins, lingering
    cdef public Py_ssize_t turns
    cdef public long long bus_bytes_out, bytes_in, bytes_out

    @cython.locals(connection=Connection, fd=int, mask=uint, ready=int, at=int, began=double)
    cpdef turn(self, double timeout)
    @cython.locals(connection=Connection, dirty=list, at=Py_ssize_t)
    cdef _flush(self)
    @cython.locals(kept=Py_ssize_t, inline=bint, at=Py_ssize_t, n=Py_ssize_t, room=Py_ssize_t)
    @cython.locals(extras=Extras)
    cpdef _read(self, Connection connection)
    @cython.locals(taken=Py_ssize_t, receiver=Receiver)
    cpdef _receive(self, Connection connection, object unparsed, Py_ssize_t kept, bint inline, Py_ssize_t n)
    @cython.locals(at=int, count=int, fds=list)
    cdef _remember(self, int ready, double now)
