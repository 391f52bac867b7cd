import cython

from commitlog.chunk cimport Chunk
from router.effects cimport ChunkRows, Deliver, Scatter
from router.readers.reader cimport Group, LiveReaders, Reader
from rumq.mqtt.kernels.fanout cimport Blob, Form
from rumq.session.flow_control.delivery_window cimport DeliveryWindow
from rumq.session.state.histogram cimport Histogram
from rumq.shards.delivery.fan_out_cache cimport FanOutCache, GroupBytes
from rumq.loop.scheduler cimport ShardClock


cdef class FanOut:
    cdef public dict _sessions
    cdef public list _feeds
    cdef public FanOutCache _blobs
    cdef public ShardClock _clock
    cdef public Histogram ages
    cdef public object _commands, _guard, _left_out, _ready, _retained

    @cython.locals(
        group=Group, reader=Reader, first=Reader, live=LiveReaders, flow=DeliveryWindow, blob=Blob, shaped=GroupBytes,
        publisher=Py_ssize_t, numbered_max=Py_ssize_t, counts=bint, reached=Py_ssize_t,
    )
    cpdef deliver(self, Deliver effect)
    cpdef _observe(self, Chunk chunk, Py_ssize_t rows)
    @cython.locals(
        chunk=Chunk, group=Group, reader=Reader, flow=DeliveryWindow, form=Form, blob=Blob, part=tuple, readers=list,
        form_number=Py_ssize_t, first=Py_ssize_t, stop=Py_ssize_t, v5=bint, packet_max=Py_ssize_t, alias_max=Py_ssize_t,
    )
    cpdef scatter(self, Scatter effect)
