import cython

cdef double inf
cdef long long TICKS_A_SECOND, TICK_MAX


cdef class Deadline:
    cdef public double at
    cdef public long long number
    cdef public object item


cdef class Deadlines:
    cdef public list _heap
    cdef public Py_ssize_t _cancelled, _count

    @cython.locals(first=Deadline)
    cpdef double earliest(self) except? -1


# Three of these calls are on the way of each connect.
cdef class DeadlineWheel:
    cdef public dict _ticks
    cdef public Py_ssize_t _count
    cdef public long long _looked

    @cython.locals(tick=longlong, items=list)
    cpdef put(self, item, double deadline)
    @cython.locals(deadline=double, tick=longlong, items=list, place=Py_ssize_t)
    cpdef cancel(self, item)


cpdef long long tick_of(double at) except? -1
