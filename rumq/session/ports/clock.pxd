cdef class TurnClock:
    cdef public double monotonic
    cdef public long long now_us
