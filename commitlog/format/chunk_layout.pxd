import cython

from commitlog.chunk cimport Chunk
from commitlog.kernels cimport small_chunk


cdef class LaidOut:
    cdef public object data, rows
    cdef public Py_ssize_t records
    cdef public unsigned int flags
    cdef public unsigned long long late
    cdef public list publishers


cdef class ChunkLayout:
    cdef public object _names, _buffer
    cdef public unsigned int _generation, _epoch, _chain
    cdef public unsigned long long _salt
    cdef public bytearray _seen_topics, _seen_publishers
    cdef public list _told_topics, _told_publishers

    @cython.locals(first=Chunk)
    cpdef LaidOut data(self, list chunks, long long durable_lsn, Py_ssize_t align)
