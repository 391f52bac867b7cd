import cython

from router.effects cimport ChunkRows, Deliver, Scatter
from router.reader cimport Group, Reader
from rumq.mqtt.kernels.fanout cimport Blob, Form
from rumq.session.flow_control.delivery_window cimport DeliveryWindow


cdef class FanOut:
    cdef public dict _sessions
    cdef public list _feeds
    cdef public object _blobs, _clock, _commands, _guard, _left_out, _ready, _retained

    @cython.locals(group=Group, reader=Reader, flow=DeliveryWindow)
    cpdef deliver(self, Deliver effect)
    @cython.locals(group=Group, reader=Reader, flow=DeliveryWindow, form=Form)
    cpdef scatter(self, Scatter effect)
