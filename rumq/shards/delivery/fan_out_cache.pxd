import cython

from commitlog.chunk cimport Chunk
from router.effects cimport Deliver
from router.readers.reader cimport Group
from rumq.mqtt.kernels cimport fanout
from rumq.mqtt.kernels.fanout cimport Blob, Form

cdef unsigned int FLAG_UNIFORM, FLAG_V5, ROW_QOS


cdef class GroupBytes:
    cdef public bint v5
    cdef public Py_ssize_t alias_max, packet_max
    cdef public list forms
    cdef public object key
    cdef public bytes raised


cdef class FanOutCache:
    cdef public list _located, feeds
    cdef public object _kept, _tracer
    cdef public Py_ssize_t _kept_bytes

    cpdef GroupBytes shaped(self, Group group)
    @cython.locals(forms=list)
    cpdef list forms(self, Group group, Py_ssize_t partition, bint v5, Chunk chunk)
    @cython.locals(chunk=Chunk, group=Group, blob=Blob, kept=dict)
    cpdef Blob blob_of(
        self, Deliver effect, bint v5, Py_ssize_t packet_max, Py_ssize_t publisher, long long now_us,
        Py_ssize_t numbered_max=*,
    )
    @cython.locals(qos=uint)
    cpdef Blob _maybe_as_stored(self, Chunk chunk, Form form, bint v5)
