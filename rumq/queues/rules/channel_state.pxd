# Typed fields of what each message meets.
cdef class ChannelTimer:
    cdef public double at
    cdef public dict entries
    cdef public Py_ssize_t size


cdef class ChannelEntry:
    cdef public object message, token, stage
    cdef public double expires_at
    cdef public Py_ssize_t failed
    cdef public ChannelTimer timer
    cdef public ChannelHolder consumer


cdef class ChannelHolder:
    cdef public Py_ssize_t credit
    cdef public dict held
