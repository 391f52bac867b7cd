import cython

from commitlog.chunk cimport Chunk
from router.effects cimport ChunkRows
from router.readers.reader cimport Reader
from rumq.mqtt.kernels cimport fanout
from rumq.mqtt.kernels.fanout cimport Blob
from rumq.mqtt.kernels.window cimport Window
from rumq.session.ports.transport cimport Outbox

cdef unsigned int PARTITION_BITS


cdef class DeliveryWindow:
    cdef public bint is_open, waits, window_full
    cdef public long long delivered
    cdef public dict aliases
    cdef public Outbox outbox
    cdef public int window_limit
    cdef public Window window
    cdef public object _commands, _durable, _owner, meter, retained

    cpdef bint takes(self, ChunkRows effect, Reader reader) except -1
    @cython.locals(partition=Py_ssize_t, chunk=Chunk, base=longlong, first=Py_ssize_t, count=Py_ssize_t, taken=Py_ssize_t, number=uint)
    cpdef Py_ssize_t offer(self, ChunkRows effect, Reader reader, Blob blob) except -1
    @cython.locals(window=Window, after=Py_ssize_t, before=ulonglong)
    cpdef Py_ssize_t number(
        self, Blob blob, Py_ssize_t first, Py_ssize_t count, unsigned int code, unsigned long long dup_below=*
    ) except -1
