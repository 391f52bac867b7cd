import cython

from commitlog.chunk cimport Chunk


cdef class Appended:
    cdef public Py_ssize_t partition
    cdef public Chunk chunk


cdef class Committed:
    cdef public Py_ssize_t partition
    cdef public long long lsn


@cython.locals(made=Appended)
cpdef Appended appended(Py_ssize_t partition, Chunk chunk)


@cython.locals(made=Committed)
cpdef Committed committed(Py_ssize_t partition, long long lsn)
