# The fields of a packet at C speed: a CONNECT has ten.
import cython


cdef class Fields:
    cdef public bytes body
    cdef public Py_ssize_t at, end

    @cython.locals(at=Py_ssize_t)
    cpdef int byte(self, name) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int two_bytes(self, name) except -1
    cpdef bytes binary(self, name)
    @cython.locals(raw=bytes)
    cpdef str string(self, name)
    @cython.locals(at=Py_ssize_t, stop=Py_ssize_t)
    cpdef bytes take(self, Py_ssize_t count, name)
    cpdef finish(self)
