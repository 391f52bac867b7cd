import cython

from commitlog.chunk cimport Chunk
from commitlog.format.chunk_layout cimport ChunkLayout, LaidOut
from commitlog.format.chunk_position cimport ChunkPosition
from commitlog.index.index_builder cimport IndexBuilder
from commitlog.kernels.positioned_write cimport write_now


cdef long long HEAD_END


cdef class Flush:
    cdef public object _files, _handle, data
    cdef public bint syncs
    cdef public Py_ssize_t size
    cdef public int descriptor
    cdef public long long position

    cpdef set(self, long long position, object data, Py_ssize_t size)
    @cython.locals(found=int, number=int)
    cpdef bint write_now(self) except -1


cdef class SegmentWriter:
    cdef public ChunkLayout _layout
    cdef public Py_ssize_t _small_align
    cdef public bint sync_groups, _may_allocate, must_end, _is_known
    cdef public Flush _flush
    cdef public long long position, _allocated, _low, _base_lsn, _opened_us, _bytes_max, _us_max, _direct_bytes_min
    cdef public object _options, _files, _directory, _generation, _epoch, _names, _manifest, _random, _handle, tap
    cdef public object path, _salt
    cdef public IndexBuilder _draft
    cdef public list _owed

    cpdef bint must_roll(self, long long size, long long now_us)
    cpdef bint wants_room(self, long long group_bytes)
    @cython.locals(first=Chunk, laid=LaidOut, flush=Flush, align=Py_ssize_t, size=Py_ssize_t, ahead=Py_ssize_t)
    cpdef Flush lay_out(self, list chunks, long long durable_lsn, ChunkPosition place)


@cython.locals(chunk=Chunk, size=Py_ssize_t)
cpdef Py_ssize_t bytes_of(list chunks) except -1
