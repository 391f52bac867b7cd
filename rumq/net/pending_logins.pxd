# Three of these calls are on the way of each connect.
import cython

cdef int SILENT, HEARD, OWED


cdef class Holder:
    cdef public str name
    cdef public Py_ssize_t bytes
    cdef public dict heard, owed, silent

    cpdef dict at(self, int stage)
    cpdef Py_ssize_t waiting(self) except -1


cdef class PendingLogin:
    cdef public Holder holder
    cdef public int stage
    cdef public Py_ssize_t size
    cdef public long long came


cdef class Ranking:
    cdef public list _by_count
    cdef public Py_ssize_t _most, total

    @cython.locals(by_count=list, counted=dict)
    cpdef move(self, Holder holder, Py_ssize_t before, Py_ssize_t after)


cdef class PendingLogins:
    cdef public long long count_max, holder_count_max, bytes_max
    cdef public Py_ssize_t shed, bytes
    cdef public object on_shed
    cdef public object _end, _turn
    cdef public dict _pending, _closing, _holders
    cdef public Ranking _by_waiting, _by_owed

    @cython.locals(holder=Holder)
    cpdef add(self, connection)
    @cython.locals(found=PendingLogin, holder=Holder)
    cpdef discard(self, connection)
    @cython.locals(found=PendingLogin, holder=Holder, before=int)
    cpdef set_state(self, connection, int state)
    @cython.locals(found=PendingLogin, more=Py_ssize_t)
    cpdef bint keep_bytes(self, connection, Py_ssize_t size) except -1
    @cython.locals(count=Py_ssize_t)
    cdef _count_in(self, connection, Holder holder, int stage)
    @cython.locals(count=Py_ssize_t)
    cdef _count_out(self, connection, Holder holder, int stage)
