import cython

from commitlog.format.chunk_position cimport ChunkPosition
from commitlog.kernels cimport rows as kernel


cdef class Index:
    cdef public list places
    cdef public object known, names, publishers, rows, topics


cdef class IndexBuilder:
    cdef public Index index
    cdef public list _columns
    cdef public bytearray _few, _seen
    cdef public long long _few_row
    cdef public Py_ssize_t _few_count
    cdef public object _first, _following

    @cython.locals(count=Py_ssize_t, row=longlong)
    cpdef add(
        self, ChunkPosition place, unsigned long long base_lsn, object rows, list topics, list publishers
    )
    cpdef _end_few(self, long long row)
