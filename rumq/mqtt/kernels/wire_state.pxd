# What other kernels may reach of a connection at C speed.
import cython

from rumq.mqtt.kernels.window cimport Window


# The small ones together: there is one for each connection, and most of them are idle.
@cython.no_gc
cdef class Wire:
    cdef public unsigned char v5, qos_max, retain_available, restores_qos, own, undecided, journal_part
    cdef readonly unsigned char stop, fault
    cdef public unsigned short alias_max, passed, receive_maximum, unacknowledged
    cdef readonly unsigned short packet_id, partition
    cdef public int packet_bytes_max, pubacks
    cdef readonly int frame_bytes
    cdef public unsigned int session_tag
    cdef public list aliases
    cdef public list publishers
    cdef public bytearray qos2_open
    cdef public bytearray acks
    cdef public unsigned long long ack_parts
    cdef public Window window
    cdef public unsigned long long published
    cdef public unsigned long long others
    cdef public unsigned long long answers
    cdef public unsigned long long touched
    cdef public bytearray noted
    cdef readonly object fault_text
    cdef readonly object topic
    cdef bytes last_key
    cdef long long last_value


cdef bytearray acks_of(Wire wire)
cdef bytearray noted_of(Wire wire)
cpdef unsigned long long journal_bit(Wire wire) noexcept
