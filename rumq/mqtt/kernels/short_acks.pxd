# What other kernels may call at C speed.
from rumq.mqtt.kernels.wire_state cimport Wire


cdef void put_ack(bytearray acks, unsigned int head, unsigned int pid)
cdef void put_four(bytearray out, unsigned char first, unsigned char second, unsigned char third, unsigned char fourth)
cdef int short_ack(Wire wire, unsigned int head, const unsigned char *buf, Py_ssize_t at, Py_ssize_t rem)
