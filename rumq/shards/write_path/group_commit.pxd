
cdef class GroupCommit:
    cdef public bint is_draining
    cdef public double linger
    cdef public list _due, _mark_due, _own, _partitions
    cdef public object _acks, _admission, _clock, _commands, _events, _in_flight, _retry, _routed
    cdef public object _workers, submitted_bytes
    cdef public set _given_up, _rolls
