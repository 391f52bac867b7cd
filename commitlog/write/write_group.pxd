from commitlog.chunk cimport Chunk
from commitlog.format.chunk_position cimport ChunkPosition
from commitlog.format.chunk_layout cimport are_one_piece
from commitlog.write.segment_writer cimport Flush, SegmentWriter, bytes_of

cdef Py_ssize_t SMALL_BYTES_MAX, SPARE_BYTES


cdef class WriteGroup:
    cdef public bint _roll, preallocates, wants_room
    cdef public SegmentWriter _writer
    cdef public list _pieces, chunks, news
    cdef public Py_ssize_t _next, bytes
    cdef public long long _position, durable_lsn, end_lsn, mark_us, safe_lsn
    cdef public object _failed, fault, offline
    cdef public ChunkPosition place

    cpdef set(self, SegmentWriter writer, list chunks, long long durable_lsn, long long end_lsn)
    cpdef Chunk chunk(self, Py_ssize_t at)
    cpdef bint is_small(self) except -1
    cpdef Flush begin(self)
    cpdef end(self)
    cpdef _write(self)
