from router.effects cimport ChunkRows
from router.reader cimport Reader
from rumq.mqtt.kernels.fanout cimport Blob


cdef class DeliveryWindow:
    cdef public bint is_open, waits, window_full
    cdef public long long delivered
    cdef public dict aliases
    cdef public int _window_limit
    cdef public object _commands, _durable, _owner, meter, outbox, retained, window

    cpdef bint takes(self, ChunkRows effect, Reader reader) except -1
    cpdef offer(self, ChunkRows effect, Reader reader, Blob blob)
