# What a pump calls in each turn, through a table of C functions.
cdef class TurnHandler:
    cpdef double begin_turn(self) except? -1
    cpdef end_turn(self)
    cpdef end_quiet_turn(self)
    cpdef double seconds_to_next_deadline(self) except? -1
