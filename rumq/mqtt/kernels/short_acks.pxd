# What other kernels may call at C speed.
from rumq.mqtt.kernels.wire_state cimport Wire


cdef void put_ack(bytearray acks, unsigned int head, unsigned int pid)
cdef int short_ack(Wire wire, unsigned int head, const unsigned char *buf, Py_ssize_t at, Py_ssize_t rem)
