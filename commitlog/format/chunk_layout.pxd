import cython

from commitlog.chunk cimport Chunk


cdef class ChunkLayout:
    cdef public object _names, _generation, _epoch, _buffer, _salt, _chain
    cdef public bytearray _seen_topics, _seen_publishers
    cdef public list _told_topics, _told_publishers

    @cython.locals(first=Chunk)
    cpdef data(self, list chunks, long long durable_lsn, Py_ssize_t align)
