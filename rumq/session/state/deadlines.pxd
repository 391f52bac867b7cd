import cython


cdef class Deadline:
    cdef public double at
    cdef public long long number
    cdef public object item


cdef class Deadlines:
    cdef public list _heap
    cdef public Py_ssize_t _cancelled, _count

    @cython.locals(first=Deadline)
    cpdef double earliest(self) except? -1
