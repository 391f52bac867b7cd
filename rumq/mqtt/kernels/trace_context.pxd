# What the turn reaches of the sampler at C speed.
cdef class Sampler:
    cdef public long long every, left, over
    cdef public Py_ssize_t budget, per_second_max
    cdef public double until
    cdef public bint waits
    cdef public list carried

    cpdef bint wants(self, object rows, object frames, Py_ssize_t count, unsigned int flags, double now)
    cpdef look(self, object rows, object frames, Py_ssize_t count)
