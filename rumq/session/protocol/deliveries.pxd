import cython

from rumq.session.flow_control.delivery_window cimport DeliveryWindow


cdef class Deliveries:
    cdef public bint connack_pending, withheld
    cdef public DeliveryWindow flow
    cdef public object _acks, _broker, _handler, client, session, unsent

    @cython.locals(flow=DeliveryWindow)
    cpdef acknowledged(self)
