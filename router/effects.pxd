import cython

from commitlog.chunk cimport Chunk
from router.readers.reader cimport Group


cdef class ChunkRows:
    cdef public Chunk chunk
    cdef public Py_ssize_t partition, first, stop


cdef class Scatter(ChunkRows):
    cdef public list parts


cdef class Deliver(ChunkRows):
    cdef public Group group
    cdef public object wanted, places, denied
    cdef public list readers
    cdef public Py_ssize_t form


@cython.locals(made=Deliver)
cpdef Deliver all_rows(Group group, Py_ssize_t partition, Chunk chunk, Py_ssize_t first, Py_ssize_t stop, list readers, Py_ssize_t form)
