# What other kernels may reach of the window at C speed.
cdef class Window:
    cdef public Py_ssize_t limit
    cdef public Py_ssize_t in_flight
    cdef readonly unsigned long long head
    cdef public unsigned long long next
    cdef readonly unsigned long long completed
    cdef unsigned long long mask
    cdef bytearray states
    cdef bytearray lsns
    cdef bytearray readers
    cpdef Py_ssize_t credit(self)
    cpdef reserve(self, Py_ssize_t count)
    cpdef int acknowledge(self, unsigned int head, unsigned int pid)
    cdef void finish(self, unsigned long long seq)
