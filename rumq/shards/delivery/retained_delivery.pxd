cdef class RetainedDelivery:
    cdef public object _drop_counters, _partitions, _view
    cdef public long long now_us
    cdef public Py_ssize_t builds_left, looks_left

    cpdef begin_turn(self, long long now_us)
