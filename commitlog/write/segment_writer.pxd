import cython

from commitlog.chunk cimport Chunk
from commitlog.format.chunk_layout cimport ChunkLayout, LaidOut
from commitlog.kernels.positioned_write cimport write_now


cdef class Flush:
    cdef public object _files, _handle, data
    cdef public bint syncs
    cdef public int descriptor
    cdef public long long position

    @cython.locals(found=int, number=int)
    cpdef bint write_now(self) except -1


cdef class SegmentWriter:
    cdef public ChunkLayout _layout
    cdef public bint sync_groups, _may_allocate, must_end, _is_known
    cdef public int _descriptor
    cdef public long long position, _allocated, _low, _base_lsn, _opened_us, _bytes_max, _us_max, _direct_bytes_min
    cdef public object _options, _files, _directory, _generation, _epoch, _names, _manifest, _random, _handle, tap
    cdef public object path, _draft
    cdef public list _owed

    cpdef bint must_roll(self, long long size, long long now_us)
    cpdef bint wants_room(self, long long group_bytes)
    @cython.locals(first=Chunk, laid=LaidOut)
    cpdef lay_out(self, list chunks, long long durable_lsn)
