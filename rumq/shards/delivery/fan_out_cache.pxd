
cdef class FanOutCache:
    cdef public list _feeds, _located
    cdef public object _kept, _kept_bytes
