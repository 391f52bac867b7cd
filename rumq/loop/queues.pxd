
cdef class StepQueue:
    cdef public list items

    cpdef put(self, command)
    cpdef list take(self)


cdef class ReadyLinks:
    cdef public dict now
    cdef public list next_turn

    cpdef begin_turn(self)
