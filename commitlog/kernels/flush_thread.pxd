# The fields of a `FlushThread`.
from cpython.buffer cimport Py_buffer

from commitlog.kernels.flush_calls cimport FlushJob


cdef class FlushThread:
    cdef FlushJob *job
    cdef Py_buffer view
    cdef object jobs, thread
    cdef public object done
    cdef bint is_held
    cdef int result

    cpdef start(self, int fd, object data, Py_ssize_t size, long long position)
    cpdef int maybe_end(self) except? -9


cpdef reset(int ended_fd)
