# What ends a turn, through a table of C functions.
cdef class Stage:
    cpdef end_turn(self)
    cpdef end_second_step(self)
    cpdef double next_deadline(self) except? -1
