# The fields of an outbox, which the delivery and the pump share.
cdef class Outbox:
    cdef public Py_ssize_t room
    # `is_quiet` is a transport's; it stands here, where it takes no room.
    cdef public unsigned char refused, is_quiet

    cpdef write(self, object data, object owner=*)


cdef class Transport(Outbox):
    cdef public object link


cdef class Receiver:
    cpdef Py_ssize_t receive(self, object data, Py_ssize_t pos, Py_ssize_t end) except -1
