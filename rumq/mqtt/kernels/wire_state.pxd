# What other kernels may reach of a connection at C speed.
from rumq.mqtt.kernels.window cimport Window


cdef class Wire:
    cdef public bint v5
    cdef public Py_ssize_t packet_bytes_max
    cdef public unsigned int qos_max
    cdef public bint retain_available
    cdef public unsigned int alias_max
    cdef public list aliases
    cdef public list publishers
    cdef public bytearray qos2_open
    cdef public Py_ssize_t receive_maximum
    cdef public Py_ssize_t unacknowledged
    cdef public bytearray acks
    cdef public unsigned long long ack_parts
    cdef public Py_ssize_t pubacks
    cdef public Window window
    cdef public unsigned long long published
    cdef public unsigned long long others
    cdef public unsigned long long answers
    cdef public unsigned long long touched
    cdef public unsigned long long durable_bit
    cdef public unsigned int session_tag
    cdef public bytearray noted
    cdef public bint restores_qos
    cdef public bint own
    cdef public bint undecided
    cdef public unsigned int passed
    cdef readonly unsigned int packet_id
    cdef readonly int stop
    cdef readonly int fault
    cdef readonly object fault_text
    cdef readonly object topic
    cdef readonly Py_ssize_t partition
    cdef readonly Py_ssize_t frame_bytes
    cdef bytes last_key
    cdef long long last_value


cdef bytearray acks_of(Wire wire)
cdef bytearray noted_of(Wire wire)
