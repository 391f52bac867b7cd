import cython

from commitlog.kernels.flush_thread cimport FlushThread as Thread
from commitlog.kernels.flush_thread cimport reset
from commitlog.write.segment_writer cimport Flush


cdef class Pool:
    cdef public int fd
    cdef public Py_ssize_t pending

    cpdef bint maybe_write(self, Flush flush) except -1
    cpdef flush(self, Flush flush, object done, Py_ssize_t lane=*)
    cpdef finish(self)


cdef class Worker(Pool):
    cdef public bint _one_lane, _rests
    cdef public double _rests_until
    cdef public dict _flush_threads, _lanes
    cdef public list _flushes, _threads
    cdef public object _failed, _finished, _monotonic, _name

    cpdef bint maybe_write(self, Flush flush) except -1
    @cython.locals(thread=Thread)
    cpdef flush(self, Flush flush, object done, Py_ssize_t lane=*)
    @cython.locals(thread=Thread, at=Py_ssize_t, number=int)
    cpdef finish(self)
    cpdef _tell(self, object done, object result, object fault)
