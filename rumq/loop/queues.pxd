
cdef class StepQueue:
    cdef public list items
    cdef public object put

    cpdef list take(self)


cdef class ReadyLinks:
    cdef public dict now
    cdef public list next_turn

    cpdef begin_turn(self)
