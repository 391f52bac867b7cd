import cython

from commitlog.chunk cimport Chunk
from commitlog.kernels cimport small_chunk


cdef Py_ssize_t LATE_WORD, CRC_WORD


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
    cdef public bytearray _seen_topics, _seen_publishers, small_bytes
    cdef public list _told_topics, _told_publishers

    @cython.locals(total=Py_ssize_t)
    cpdef Py_ssize_t small(self, Chunk chunk, long long durable_lsn, Py_ssize_t align, Py_ssize_t ahead=*) except -1
    @cython.locals(late=uint)
    cpdef unsigned int small_late(self) except? 1
    @cython.locals(first=Chunk)
    cpdef LaidOut data(self, list chunks, long long durable_lsn, Py_ssize_t align, Py_ssize_t ahead=*)
