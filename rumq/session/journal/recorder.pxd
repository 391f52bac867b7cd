cdef class JournalRecorder:
    cdef public list entries
    cdef public dict sessions, qos2_changed, qos2_released, _subscribed, _left
    cdef public object last_number

    cpdef bint has_entries(self)
