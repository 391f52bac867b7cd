
cdef class RetainedQuota:
    cdef public list _batches
    cdef public object _events, _looked, _say, _store, _view, refused
    cdef public set full

    cpdef end_turn(self)
