import cython

from commitlog.chunk cimport Chunk
from commitlog.index.segments cimport SegmentList
from commitlog.format.chunk_position cimport ChunkPosition
from commitlog.kernels cimport rows as kernel
from commitlog.names.publisher_names cimport PublisherNames
from commitlog.write.segment_writer cimport SegmentWriter
from commitlog.write.write_group cimport WriteGroup


cdef Py_ssize_t CHUNK_BYTES


cdef class Partition:
    cdef public Py_ssize_t wants_room
    cdef public list _hot, _hot_lsns, _pending
    cdef public SegmentList segments
    cdef public SegmentWriter writer
    cdef public WriteGroup _in_flight
    cdef public long long _hot_bytes, _hot_bytes_max, _last_ts, pending_bytes
    cdef public long long durable_lsn, marked_lsn, next_lsn, written_lsn
    cdef public object directory, files, generation, index, next_offsets, number, offline
    cdef public PublisherNames publisher_names
    cdef public object replicated_lsn, spec, starts, stream, topic_ids, topic_names

    @cython.locals(chunk=Chunk, size=Py_ssize_t)
    cpdef Chunk append(
        self, object rows, object frames, Py_ssize_t count, unsigned int flags, long long now_us, object tags=*,
        object sources=*,
    )
    cpdef long long committed(self) except? -1
    @cython.locals(group=WriteGroup)
    cpdef WriteGroup take_group(self)
    @cython.locals(segments=SegmentList)
    cpdef complete(self, WriteGroup group)
    @cython.locals(safe_lsn=cython.longlong)
    cpdef _trim(self)
    cpdef long long _readable_lsn(self)
