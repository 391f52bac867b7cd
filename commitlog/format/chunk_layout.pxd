import cython

from commitlog.chunk cimport Chunk
from commitlog.format.chunk_position cimport ChunkPosition
from commitlog.kernels cimport small_chunk


cdef Py_ssize_t FLAGS_WORD, COUNT_WORD, LATE_WORD, CRC_WORD, HEADER_BYTES, ROW_BYTES, SMALL_BODY_MAX


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
    cdef public bytearray _seen_topics, _seen_publishers, _joined, small_bytes
    cdef public list _told_topics, _told_publishers

    @cython.locals(
        chunk=Chunk, first=Chunk, rows_len=Py_ssize_t, frames_len=Py_ssize_t, total=Py_ssize_t, flags=uint
    )
    cpdef Py_ssize_t small(self, list chunks, long long durable_lsn, Py_ssize_t align, Py_ssize_t ahead=*) except -1
    cpdef place_small(self, ChunkPosition place, long long position, Chunk first, Py_ssize_t size)
    cpdef small_rows(self)
    @cython.locals(first=Chunk)
    cpdef LaidOut data(self, list chunks, long long durable_lsn, Py_ssize_t align, Py_ssize_t ahead=*)


@cython.locals(chunk=Chunk, size=Py_ssize_t, bytes_max=Py_ssize_t, last_us=longlong)
cpdef bint are_one_piece(list chunks) except -1
